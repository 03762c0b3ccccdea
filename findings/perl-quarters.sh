#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A star with a step, in Perl: `0 0 1 */3 *` is March, June, September and December.
#
# In cron, and in libraries of Python and PHP that were run beside it, a step counts from the least
# value of its field: each third month is January, April, July and October, each second day an odd
# one. Schedule::Cron 1.05 and Schedule::Cron::Events 1.96 (by Set::Crontab 1.03) take the values
# that the step divides: `*/2` are the even days, and a quarter's job comes two months later. For a
# field that begins with 0 both are the same. Of Debian's modules of Perl, DateTime::Event::Cron
# 0.09 counts as cron does. And `1/3`, "from 1 on" for other libraries, is refused by Schedule::Cron
# and is 1 alone for the two others.
#
# It matters to who moves lines between a crontab and a daemon in Perl: each is accepted, none says
# a word. Write the values out, or a range: `1-12/3` is the same everywhere.

. "$(dirname "$0")/lib.sh"

debian trixie libschedule-cron-perl=1.05-2 libschedule-cron-events-perl=1.96-2 \
	libset-crontab-perl=1.03-1.1 libdatetime-event-cron-perl=0.09-2 libdatetime-perl tzdata
cat >"$work/next.pl" <<'EOF'
my ($module, $line) = @ARGV;
my ($at, @days) = (1798797600);		# 2027-01-01 10:00
eval {
	if ($module eq 'Schedule::Cron') {
		require Schedule::Cron;
		my $cron = Schedule::Cron->new(sub {});
		push @days, $at = $cron->get_next_execution_time($line, $at) for 1 .. 4;
	} elsif ($module eq 'Schedule::Cron::Events') {
		require Schedule::Cron::Events;
		require Time::Local;
		my $cron = Schedule::Cron::Events->new("$line x", Seconds => $at);
		push @days, Time::Local::timegm($cron->nextEvent) for 1 .. 4;
	} else {
		require DateTime;
		require DateTime::Event::Cron;
		my $cron = DateTime::Event::Cron->new(cron => $line);
		my $day = DateTime->from_epoch(epoch => $at);
		push @days, ($day = $cron->next($day))->epoch for 1 .. 4;
	}
	1;
} or print "refused\n" and exit;
print join(' ', map { my @t = gmtime $_; sprintf '%d-%d', $t[4] + 1, $t[3] } @days), "\n";
EOF
next_days() {
	local perl=$tree/usr/lib/x86_64-linux-gnu/perl

	TZ=UTC PERL5LIB=$tree/usr/share/perl5:$(echo "$tree"/usr/lib/x86_64-linux-gnu/perl5/5.*):$(
		echo "$tree"/usr/share/perl/5.*.*):$(echo "$perl"/5.*.*):$perl-base \
		in_tree usr/bin/perl "$work/next.pl" "$@"
}

while IFS='|' read -r line multiples steps; do
	for module in Schedule::Cron Schedule::Cron::Events; do
		expect "$module: '$line'" "$(next_days $module "$line")" "$multiples"
	done
	expect "DateTime::Event::Cron: '$line'" "$(next_days DateTime::Event::Cron "$line")" "$steps"
done <<'EOF'
0 0 1 */3 *|3-1 6-1 9-1 12-1|4-1 7-1 10-1 1-1
0 9 */2 * *|1-2 1-4 1-6 1-8|1-3 1-5 1-7 1-9
0 0 1 1-12/3 *|4-1 7-1 10-1 1-1|4-1 7-1 10-1 1-1
EOF
expect "Schedule::Cron: '0 0 1 1/3 *'" "$(next_days Schedule::Cron '0 0 1 1/3 *')" refused
for module in Schedule::Cron::Events DateTime::Event::Cron; do
	expect "$module: '0 0 1 1/3 *'" "$(next_days $module '0 0 1 1/3 *')" "1-1 1-1 1-1 1-1"
done
