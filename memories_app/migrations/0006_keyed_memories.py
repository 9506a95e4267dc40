"""Memories of programs have a namespace, a key and a value."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories_app', '0005_vectors_due'),
    ]

    operations = [
        migrations.AddField(
            model_name='memory',
            name='key',
            field=models.CharField(blank=True, editable=False, max_length=256, null=True, verbose_name='key'),
        ),
        migrations.AddField(
            model_name='memory',
            name='namespace',
            field=models.CharField(blank=True, editable=False, max_length=256, null=True, verbose_name='namespace'),
        ),
        migrations.AddField(
            model_name='memory',
            name='value',
            field=models.JSONField(blank=True, editable=False, null=True, verbose_name='value'),
        ),
        migrations.AddField(
            model_name='memoryrevision',
            name='value',
            field=models.JSONField(blank=True, null=True, verbose_name='value'),
        ),
    ]
