/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How much of the store is in memory. With TWHEELD_SMALL all limits are tiny, so that tests reach
 * each of them often.
 */
#ifndef TWHEELD_LIMITS_H
#define TWHEELD_LIMITS_H

/* Seconds: a wall clock before this, 2026-01-01T00:00:00Z, is not set yet. */
#define CLOCK_SET 1767225600

#ifdef TWHEELD_SMALL
#define READY_MOST 8
#define READY_PAGE 3
#define WINDOW_LENGTH (4 * SECOND)
#define WINDOW_PIECE 3
#define WINDOW_MOST 12
#define BODIES_MOST 100
#define KICK_PIECE 2
#define LOG_PAGES 40
#define FIRINGS_MOST 3
#define FIRINGS_WEIGHT 3000
#define PRUNE SECOND
#define PRUNE_PIECE 20
#define HISTORY_LEAST SECOND
#define WAITING_MOST 3
#define DAYS_SECONDS 1
#define DAYS_SECONDS_MOST 3
#define NOTES_MOST (40 << 10)
#define TRACES_OF_JOB 5
#define TRACES_MOST 60
#define TRACE_BYTES_MOST (100 << 10)
#define TRACE_COUNT 1
#define FAILING_MOST 5
#else
/* A tube's ready jobs: the most in memory, and how many are loaded when there are too few */
#define READY_MOST 8192
#define READY_PAGE 1000
/* Delayed jobs in memory: due within this time; how many are read at a time; the most */
#define WINDOW_LENGTH (600 * SECOND)
#define WINDOW_PIECE 2000
#define WINDOW_MOST 200000
/* The most bytes of small bodies that are kept in memory */
#define BODIES_MOST (64 << 20)
/* Jobs that one kick has on the way at a time */
#define KICK_PIECE 500
/* Pages of the store's log before it is written into the database */
#define LOG_PAGES 4000
/* Schedules that are being written at a time */
#define FIRINGS_MOST 500
/* The most bytes of their jobs, not counting the last one's */
#define FIRINGS_WEIGHT (2 << 20)
/* How often runs that are over are forgotten */
#define PRUNE (10 * SECOND)
/* Runs that a transaction forgets, and schedules that it is asked to forget */
#define PRUNE_PIECE 500
/* The least time for which runs that are over are kept */
#define HISTORY_LEAST (86400 * SECOND)
/* The most times in one answer that need wait no longer */
#define WAITING_MOST 500
/* Seconds of a processor that a file of CALENDAR= may take, and all of a reading */
#define DAYS_SECONDS 10
#define DAYS_SECONDS_MOST 60
/* Bytes of the notes of jobs whose tries are not over, which are in memory */
#define NOTES_MOST (64 << 20)
/* Of a job, its last tries are kept; of all, those that go last, and their bytes */
#define TRACES_OF_JOB 100
#define TRACES_MOST 1000000
#define TRACE_BYTES_MOST (1LL << 30)
/* So many times what is old is looked for until those of a shared store are counted again */
#define TRACE_COUNT 60
/* Tubes of which it is known that they have failed, so that their recovery is told */
#define FAILING_MOST 10000
#endif

/* Schedules that have figures in metrics, and tubes */
#define FIGURES_MOST 500
/* Nothing is kept longer, so that all times have numbers */
#define KEEP_MOST (36500 * (86400 * SECOND))
/* Bytes of a note: a line of up to 255, and 8 KiB of output */
#define NOTE_MOST (256 + (8 << 10))
/* What one answer has at most: traces, and bytes of notes */
#define TRACES_TOLD 10000
#define NOTES_TOLD (4 << 20)

#endif
