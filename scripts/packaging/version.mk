# SPDX-License-Identifier: GPL-2.0
#
# The version of twheel, for make and for what greps it out: the library, the module
# (Kbuild), the packages, all take it from here.
VERSION := 0.3.0
