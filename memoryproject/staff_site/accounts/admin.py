"""Registers our admin pages of accounts in place of those of the packages."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django_otp.plugins.otp_static import admin as static_admin
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp import admin as totp_admin
from django_otp.plugins.otp_totp.models import TOTPDevice

from memoryproject.staff_site.accounts.lockout import FailedLoginAdmin
from memoryproject.staff_site.accounts.users import StaffGroupAdmin, StaffUserAdmin
from memoryproject.staff_site.models import FailedLogin

# The imports above have registered the packages' pages by now: these pages show secrets.
PACKAGES = (static_admin, totp_admin)

for model in (User, Group, StaticDevice, TOTPDevice):
    if admin.site.is_registered(model):
        admin.site.unregister(model)
admin.site.register(User, StaffUserAdmin)
admin.site.register(Group, StaffGroupAdmin)
admin.site.register(FailedLogin, FailedLoginAdmin)
