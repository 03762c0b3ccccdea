#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A tube called 2026-11-30 is a date for clients of beanstalkd; with 1.13, only in lists.
#
# beanstalkd answers in YAML, and names of tubes are not quoted in 1.12. So clients that read it
# with a YAML library (node-beanstalk 1.6.7, beanstalkd 2.2.5 and fivebeans 1.5.0 of npm) give a
# Date for a tube that is called by the day, the number 7 for 007, 1000 for 1e3, true and null for
# these. 1.13 quotes the name in stats-job and stats-tube, and not in list-tubes: one client has two
# types for one tube, and what it takes from the list can't be used for the next command.
# Another difference: `reserve-with-timeout -1` reserves in 1.12, and is BAD_FORMAT in 1.13.
#
# It matters to who names tubes by day or customer's number, and to servers that answer as
# beanstalkd does, twheeld among them.

. "$(dirname "$0")/lib.sh"

npm_get node-beanstalk@1.6.7
cat >"$work/names.cjs" <<'EOF'
const { Client } = require("node-beanstalk");

const type = (name) => (name instanceof Date ? "Date" : typeof name);
(async () => {
	const client = new Client({ host: "127.0.0.1", port: +process.argv[2] }), seen = [];

	await client.connect();
	for (const tube of ["2026-11-30", "007", "1e3", "true"]) {
		await client.use(tube);
		const { name } = await client.statsTube(tube), list = await client.listTubes();
		seen.push(`${type(name)}/${type(list.at(-1))}`);
	}
	console.log(seen.join(" "));
	process.exit();
})();
EOF
# Says what one command is answered.
ask() {
	exec 3<>"/dev/tcp/127.0.0.1/$port"
	printf 'put 0 0 60 1\r\nx\r\n%s\r\n' "$1" >&3
	read -r _ <&3
	read -r seen <&3
	exec 3>&-
	echo "${seen%$'\r'}"
}

try() {
	rm -rf "$tree"
	debian "$1" "beanstalkd=$2"
	port=$(port)
	serve usr/bin/beanstalkd -l 127.0.0.1 -p "$port"
	for ((i = 0; i < 100; i++)); do
		! : 2>/dev/null <"/dev/tcp/127.0.0.1/$port" || break
		sleep 0.1
	done
	expect "$2: name in stats-tube/in list-tubes of 2026-11-30, 007, 1e3, true" \
		"$(node "$work/names.cjs" "$port")" "$3"
	expect "$2: reserve-with-timeout -1" "$(ask 'reserve-with-timeout -1')" "$4"
}

try bookworm 1.12-2+b1 "Date/Date number/number number/number boolean/boolean" "RESERVED 1 1"
try trixie 1.13-1 "string/Date string/number string/number string/boolean" BAD_FORMAT
