"""Add opening hours to the profile, rules with what they did, and marks of conversations."""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0022_session_outcomes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ChatMark',
            fields=[
                ('chat', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='mark', serialize=False, to='sessions_app.chat', verbose_name='chat')),
                ('rule_name', models.CharField(blank=True, max_length=60, verbose_name='rule')),
                ('due_at', models.DateTimeField(blank=True, null=True, verbose_name='due at')),
            ],
            options={
                'verbose_name': 'mark of a rule',
                'verbose_name_plural': 'marks of rules',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='OpeningHours',
            fields=[
            ],
            options={
                'verbose_name': 'opening hours',
                'verbose_name_plural': 'opening hours',
                'proxy': True,
                'indexes': [],
                'constraints': [],
            },
            bases=('sessions_app.assistantprofile',),
        ),
        migrations.AddField(
            model_name='assistantprofile',
            name='hours',
            field=models.JSONField(blank=True, db_default={}, default=dict, editable=False, verbose_name='opening hours'),
        ),
        migrations.CreateModel(
            name='Rule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60, unique=True, verbose_name='name')),
                ('is_on', models.BooleanField(default=True, verbose_name='on')),
                ('position', models.PositiveSmallIntegerField(default=10, verbose_name='order')),
                ('when', models.CharField(choices=[('message', 'a client writes'), ('new_chat', 'somebody writes for the first time'), ('label', 'a label is added'), ('silence', 'a client waits for an answer'), ('handover', 'a conversation is handed over to a person'), ('unanswered', "the assistant doesn't know the answer, or fails")], max_length=12, verbose_name='when')),
                ('minutes', models.PositiveSmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(20160)], verbose_name='minutes without an answer')),
                ('words', models.TextField(blank=True, help_text="Only if the client's message holds one of these, as whole words: one word or phrase a line.", max_length=2000, verbose_name='words')),
                ('out_of_hours', models.BooleanField(default=False, verbose_name='only while we are closed')),
                ('tells', models.BooleanField(default=False, help_text='Marks the conversation in the inbox, adds a note, and calls the webhooks.', verbose_name='tell us')),
                ('due_minutes', models.PositiveSmallIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(20160)], verbose_name='answer due in minutes')),
                ('text', models.TextField(blank=True, help_text="Not where the assistant is paused, in groups, or to those who said stop; and only within 24 hours of the client's last message.", max_length=4000, verbose_name='send the text')),
                ('template', models.CharField(blank=True, help_text='Its name and language at Meta, such as we_are_back en; one without values.', max_length=520, verbose_name='send the template')),
                ('since', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='in force since')),
                ('given', models.PositiveIntegerField(default=0, editable=False, verbose_name='assigned by turn')),
                ('add_label', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='sessions_app.label', verbose_name='add the label')),
                ('assignees', models.ManyToManyField(blank=True, help_text='One person, or several by turn. By turn, conversations that are assigned already stay with whom they have.', related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='assign to')),
                ('label', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='sessions_app.label', verbose_name='the label that is added')),
            ],
            options={
                'verbose_name': 'rule',
                'verbose_name_plural': 'rules',
                'ordering': ['position', 'id'],
            },
        ),
        migrations.CreateModel(
            name='RuleRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event', models.CharField(max_length=80, verbose_name='event')),
                ('did', models.CharField(blank=True, max_length=80, verbose_name='actions')),
                ('at', models.DateTimeField(default=django.utils.timezone.now, verbose_name='time')),
                ('chat', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sessions_app.chat', verbose_name='chat')),
                ('rule', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='sessions_app.rule', verbose_name='rule')),
            ],
            options={
                'verbose_name': 'run of a rule',
                'verbose_name_plural': 'runs of rules',
                'default_permissions': (),
                'indexes': [models.Index(fields=['at'], name='rule_runs_by_time')],
                'constraints': [models.UniqueConstraint(fields=('chat', 'rule', 'event'), name='rule_once_an_event', nulls_distinct=False)],
            },
        ),
    ]
