"""Add outcomes of sessions: whether they helped, and the evidence."""

import django.db.models.deletion
import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0021_question_set'),
    ]

    operations = [
        migrations.CreateModel(
            name='SessionOutcome',
            fields=[
                ('session', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='outcome', serialize=False, to='sessions_app.chatsession', verbose_name='session')),
                ('verdict', models.CharField(choices=[('helped', 'Helped'), ('not_helped', 'Not helped'), ('unclear', "Can't tell")], max_length=16, verbose_name='verdict')),
                ('decided', models.CharField(blank=True, choices=[('helped', 'Helped'), ('not_helped', 'Not helped'), ('unclear', "Can't tell")], default='', max_length=16, verbose_name='decided by staff')),
                ('in_force', models.GeneratedField(db_persist=True, expression=django.db.models.functions.comparison.Coalesce(django.db.models.functions.comparison.NullIf('decided', models.Value('')), 'verdict'), output_field=models.CharField(choices=[('helped', 'Helped'), ('not_helped', 'Not helped'), ('unclear', "Can't tell")], max_length=16), verbose_name='verdict in force')),
                ('evidence', models.JSONField(blank=True, default=list, verbose_name='evidence')),
                ('rules', models.PositiveSmallIntegerField(verbose_name='version of the rules')),
                ('ended_at', models.DateTimeField(verbose_name='ended at')),
                ('judged_at', models.DateTimeField(verbose_name='judged at')),
            ],
            options={
                'verbose_name': 'outcome of a session',
                'verbose_name_plural': 'outcomes of sessions',
                'default_permissions': (),
                'indexes': [models.Index(fields=['-ended_at', 'session'], name='outcomes_by_time')],
            },
        ),
    ]
