"""Create the groups of staff. Their permissions refer to the other apps' tables."""

from django.db import migrations

from memoryproject.staff_site.accounts.groups import GROUPS, groups_bring_up_to_date, permissions_make


def make_groups(apps, schema_editor):
    permissions_make()
    groups_bring_up_to_date(apps=apps)


def remove_groups(apps, schema_editor):
    apps.get_model("auth", "Group").objects.filter(name__in=GROUPS).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('api', '0001_initial'),
        ('audit', '0001_initial'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('axes', '0010_accessattemptexpiration'),
        ('cards_app', '0001_initial'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('dashboard', '0001_initial'),
        ('django_q', '0019_alter_task_options_alter_ormq_key_alter_ormq_lock_and_more'),
        ('hooks', '0001_initial'),
        ('memories_app', '0001_initial'),
        ('otp_static', '0003_add_timestamps'),
        ('otp_totp', '0003_add_timestamps'),
        ('sessions_app', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(make_groups, remove_groups),
    ]
