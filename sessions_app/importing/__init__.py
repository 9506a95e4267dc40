"""Sessions and messages as JSON files: reads them; knows neither Django nor the database."""
