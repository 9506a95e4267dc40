"""Add applications that connect themselves by OAuth, and what staff allow them."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('api', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='apitoken',
            name='resource',
            field=models.CharField(blank=True, db_default='', editable=False, max_length=500, verbose_name='resource'),
        ),
        migrations.CreateModel(
            name='OAuthClient',
            fields=[
                ('client_id', models.CharField(max_length=36, primary_key=True, serialize=False, verbose_name='client id')),
                ('metadata', models.JSONField(verbose_name='metadata')),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='created at')),
            ],
            options={
                'verbose_name': 'OAuth client',
                'verbose_name_plural': 'OAuth clients',
                'indexes': [models.Index(fields=['created_at'], name='api_oauthcl_created_df8795_idx')],
            },
        ),
        migrations.CreateModel(
            name='OAuthGrant',
            fields=[
                ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='grant', serialize=False, to='api.apitoken', verbose_name='token')),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), size=None, verbose_name='scopes')),
                ('digest', models.CharField(max_length=64, unique=True, verbose_name='digest')),
                ('redeemed', models.BooleanField(default=False, verbose_name='redeemed')),
                ('challenge', models.CharField(max_length=128, verbose_name='challenge')),
                ('redirect_uri', models.TextField(verbose_name='redirect address')),
                ('redirect_named', models.BooleanField(verbose_name='redirect address was named')),
                ('spent', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), default=list, size=None, verbose_name='spent')),
                ('ends_at', models.DateTimeField(verbose_name='ends at')),
                ('client', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='api.oauthclient', verbose_name='client')),
            ],
            options={
                'verbose_name': 'OAuth grant',
                'verbose_name_plural': 'OAuth grants',
            },
        ),
    ]
