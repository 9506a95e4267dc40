"""How a conversation ended, beside the fields of seed 001; empty in older cards."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('cards_app', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='memorycard',
            name='outcome',
            field=models.JSONField(blank=True, help_text='What was settled last, what is open, and who has to act.', null=True, verbose_name='outcome'),
        ),
    ]
