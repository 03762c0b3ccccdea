// SPDX-License-Identifier: GPL-2.0
/* Qt's QTimer, for cases.h */
#include "cases.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QSocketNotifier>
#include <QTimer>
#include <limits.h>

static QTimer *timers[TIMERS];
static QEventLoop *loop;
static QSocketNotifier *poller;

extern const char *const nevers[] = { "INT_MAX ms", "-1 ms", NULL };
extern const int periods = 1;

static void version(void) { printf("Qt %s", qVersion()); }

static int start(int i, double delay, double period)
{
	timers[i]->setSingleShot(!period);
	timers[i]->start((int)delay);
	return 0;
}

static int start_never(int i, int which)
{
	timers[i]->setSingleShot(true);
	timers[i]->start(which ? -1 : INT_MAX);
	return !timers[i]->isActive();
}

static void stop(int i) { timers[i]->stop(); }
static double left(int i) { return timers[i]->remainingTime(); }
static int active(int i) { return timers[i]->isActive(); }
static void run(void) { loop->exec(); }
static void leave(void) { loop->quit(); }
static void watch(int fd)
{
	if (fd < 0) {
		poller->setEnabled(false);
		return;
	}
	poller = new QSocketNotifier(fd, QSocketNotifier::Read);
	QObject::connect(poller, &QSocketNotifier::activated, [] { on_ready(); });
}

int main(int argc, char **argv)
{
	QCoreApplication app(argc, argv);
	int i;

	loop = new QEventLoop;
	for (i = 0; i < TIMERS; i++) {
		timers[i] = new QTimer;
		timers[i]->setTimerType(Qt::PreciseTimer);
		timers[i]->callOnTimeout([i] { on_timer(i); });
	}
	cases();
	return 0;
}
