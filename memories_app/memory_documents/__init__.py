"""Memory documents (context, decisions, interfaces, handoffs): their form, their names, and
what a store of them does. Knows no Django."""
