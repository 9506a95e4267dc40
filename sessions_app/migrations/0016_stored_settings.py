"""Make the table of the settings that administrators change in the browser."""

import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0015_fixed_language'),
    ]

    operations = [
        migrations.CreateModel(
            name='StoredSetting',
            fields=[
                ('name', models.CharField(max_length=64, primary_key=True, serialize=False, verbose_name='name')),
                ('value', models.TextField(verbose_name='value')),
                ('changed_by', models.CharField(max_length=255, verbose_name='changed by')),
                ('changed_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='changed at')),
            ],
            options={
                'verbose_name': 'stored setting',
                'verbose_name_plural': 'stored settings',
                'default_permissions': (),
            },
        ),
    ]
