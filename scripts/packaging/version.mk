# SPDX-License-Identifier: GPL-2.0
#
# The version of twheel, for make and for what greps it out.
VERSION := 0.1.0
