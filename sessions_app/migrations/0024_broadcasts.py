"""Add broadcasts and their recipients; drafts of replies are trials of an answer."""

import django.db.models.deletion
import django.utils.timezone
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0023_rules'),
    ]

    operations = [
        migrations.CreateModel(
            name='Broadcast',
            fields=[
                ('broadcast_id', models.UUIDField(default=uuid.uuid4, primary_key=True, serialize=False, verbose_name='broadcast id')),
                ('template', models.CharField(max_length=512, verbose_name='template')),
                ('language', models.CharField(max_length=6, verbose_name='language')),
                ('parameters', models.JSONField(default=list, verbose_name='values')),
                ('state', models.CharField(choices=[('running', 'Running'), ('paused', 'Paused'), ('done', 'Done'), ('cancelled', 'Cancelled')], default='running', max_length=9, verbose_name='state')),
                ('error', models.TextField(blank=True, verbose_name='error')),
                ('next_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='next messages at')),
                ('began_at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='running since')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('user_name', models.CharField(max_length=150, verbose_name='user name')),
            ],
            options={
                'verbose_name': 'broadcast',
                'verbose_name_plural': 'broadcasts',
                'ordering': ['-created_at'],
                'default_permissions': (),
            },
        ),
        migrations.AlterField(
            model_name='answertrial',
            name='memories',
            field=models.CharField(choices=[('then', 'as recalled then'), ('now', 'as recalled now'), ('none', 'none'), ('chosen', 'the ticked ones'), ('changed', 'with a change that is tried'), ('draft', 'as recalled now, for a draft of a reply')], db_default='then', max_length=8, verbose_name='memories'),
        ),
        migrations.CreateModel(
            name='BroadcastRecipient',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('left_out', models.CharField(blank=True, choices=[('stopped', 'has said stop'), ('blocked', 'is blocked'), ('no_number', 'has no number that takes templates'), ('on_hold', 'is on hold: staff have taken over, or are asked to'), ('no_name', 'has no name, which the message needs'), ('refused', "the template can't be filled, or was refused here")], max_length=16, verbose_name='left out')),
                ('made_at', models.DateTimeField(null=True, verbose_name='made at')),
                ('broadcast', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recipients', to='sessions_app.broadcast', verbose_name='broadcast')),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='broadcasts', to='sessions_app.chat', verbose_name='chat')),
                ('turn', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='recipient', to='sessions_app.turn', verbose_name='answer')),
            ],
            options={
                'verbose_name': 'recipient of a broadcast',
                'verbose_name_plural': 'recipients of broadcasts',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('broadcast', 'chat'), name='broadcast_once_a_chat')],
            },
        ),
    ]
