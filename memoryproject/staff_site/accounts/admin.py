"""Registers what the staff's room says about accounts, in the place of what packages bring."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django_otp.plugins.otp_static import admin as static_admin
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp import admin as totp_admin
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.staff_site.accounts.locks import FailedLoginAdmin
from memoryproject.staff_site.accounts.users import StaffGroupAdmin, StaffUserAdmin
from memoryproject.staff_site.models import FailedLogin

# Imported above, so that they have registered theirs by now: pages that show secrets.
PACKAGES = (static_admin, totp_admin)

for model in (User, Group, StaticDevice, TOTPDevice):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
admin.site.register(User, StaffUserAdmin)
admin.site.register(Group, StaffGroupAdmin)
admin.site.register(FailedLogin, FailedLoginAdmin)
