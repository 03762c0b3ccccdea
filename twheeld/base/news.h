/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a tube, or a schedule, may have another tube learn of it.
 */
#ifndef TWHEELD_NEWS_H
#define TWHEELD_NEWS_H

enum news { NEWS_FAILED, NEWS_RECOVERED, NEWS_MISSED, NEWS_LATE, NEWS_KINDS };

#endif
