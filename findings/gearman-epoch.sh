#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# gearmand 1.1.21 wakes a worker when a delayed job is submitted, and not when it is due.
#
# SUBMIT_JOB_EPOCH (36) has the job's time. A worker that sleeps (PRE_SLEEP) is sent NOOP at once;
# it asks, is given no job, and sleeps again. At the job's time nothing is sent: it lies until the
# worker asks for another reason, as another job, or a timeout of his own. Asked then, gearmand
# hands it out.
#
# It matters to who takes gearmand for delays: let workers ask each second.

. "$(dirname "$0")/lib.sh"

debian trixie gearman-job-server=1.1.21+ds-1
port=$(port)
serve usr/sbin/gearmand -L 127.0.0.1 -p "$port" --log-file stderr
cat >"$work/delay.py" <<'EOF'
import socket, struct, sys, time

CAN_DO, PRE_SLEEP, NOOP, GRAB, NO_JOB, ASSIGN, ECHO, EPOCH = 1, 4, 6, 9, 10, 11, 16, 36
names = {NOOP: "NOOP", NO_JOB: "NO_JOB", ASSIGN: "JOB_ASSIGN", None: "nothing"}

def connect():
    end = time.time() + 10
    while True:
        try:
            return socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        except OSError:
            if time.time() > end:
                raise
            time.sleep(0.1)

def send(to, kind, *words):
    data = b"\0".join(words)
    to.sendall(b"\0REQ" + struct.pack(">II", kind, len(data)) + data)

def receive(from_, seconds):
    from_.settimeout(seconds)
    try:
        head = from_.recv(12, socket.MSG_WAITALL)
    except socket.timeout:
        return None
    kind, length = struct.unpack(">II", head[4:])
    from_.recv(length, socket.MSG_WAITALL) if length else b""
    return kind

worker, client = connect(), connect()
send(worker, CAN_DO, b"work")
send(worker, PRE_SLEEP)
send(worker, ECHO, b"asleep")
receive(worker, 10)
send(client, EPOCH, b"work", b"", str(int(time.time()) + 3).encode(), b"data")
seen = [receive(worker, 2)]
send(worker, GRAB)
seen.append(receive(worker, 2))
send(worker, PRE_SLEEP)
seen.append(receive(worker, 10))
send(worker, GRAB)
seen.append(receive(worker, 2))
print(*(names.get(kind, kind) for kind in seen), sep=", ")
EOF

expect "at once, asked, in the 10 s in which it is due, asked" "$(python3 "$work/delay.py" "$port")" \
	"NOOP, NO_JOB, nothing, JOB_ASSIGN"
