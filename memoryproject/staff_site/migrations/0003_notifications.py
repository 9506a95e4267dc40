"""What members of staff are notified of, how, and what is still to be sent. It only adds tables."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import memoryproject.foundation.outgoing_webhooks.endpoints
import memoryproject.staff_site.models
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('dashboard', '0002_groups'),
        ('sessions_app', '0019_jobs'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='NotificationSettings',
            fields=[
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='notification_settings', serialize=False, to=settings.AUTH_USER_MODEL, verbose_name='user')),
                ('wanted', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), default=memoryproject.staff_site.models.wanted_at_first, size=None, verbose_name='wanted')),
                ('rhythm', models.PositiveSmallIntegerField(choices=[(0, 'At once'), (1, 'Every hour, together'), (24, 'Once a day, together')], default=0, verbose_name='when')),
                ('telegram_chat', models.CharField(blank=True, max_length=64, verbose_name='your id at Telegram')),
                ('webhook_url', models.CharField(blank=True, max_length=2000, verbose_name='address')),
                ('webhook_secret', models.CharField(default=memoryproject.foundation.outgoing_webhooks.endpoints.secret_new, max_length=128, verbose_name='secret')),
                ('quiet_from', models.TimeField(blank=True, null=True, verbose_name='from')),
                ('quiet_until', models.TimeField(blank=True, null=True, verbose_name='until')),
                ('time_zone', models.CharField(max_length=64, verbose_name='time zone')),
                ('language', models.CharField(default='en', max_length=16, verbose_name='language')),
            ],
            options={
                'verbose_name': 'Notifications',
                'verbose_name_plural': 'Notifications',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='PushDevice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('endpoint', models.CharField(max_length=1000, unique=True, verbose_name='address')),
                ('p256dh', models.CharField(max_length=88, verbose_name='key')),
                ('auth', models.CharField(max_length=24, verbose_name='secret')),
                ('name', models.CharField(max_length=64, verbose_name='name')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='push_devices', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'Push',
                'verbose_name_plural': 'Push',
                'ordering': ['id'],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Notification',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False, verbose_name='ID')),
                ('target', models.CharField(max_length=32, verbose_name='channel')),
                ('kind', models.CharField(max_length=16, verbose_name='kind')),
                ('subject', models.CharField(max_length=100, verbose_name='event')),
                ('created_at', models.DateTimeField(db_index=True, default=django.utils.timezone.now, verbose_name='created at')),
                ('due_at', models.DateTimeField(null=True, verbose_name='due at')),
                ('attempts', models.PositiveSmallIntegerField(default=0, verbose_name='attempts')),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('chat', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sessions_app.chat', verbose_name='chat')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'Notifications',
                'verbose_name_plural': 'Notifications',
                'default_permissions': (),
                'indexes': [models.Index(condition=models.Q(('due_at__isnull', False)), fields=['due_at'], name='notifications_due')],
                'constraints': [models.UniqueConstraint(fields=('user', 'target', 'kind', 'subject'), name='one_notification_an_event')],
            },
        ),
    ]
