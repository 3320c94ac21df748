"""Sees when a core was taken away: wakes up on it every PERIOD µs, and says when it could not.

With real-time priority (as root) no other program's work holds it up, the watched one's least of
all: what does is the machine below, or work in the kernel. A line "priority real-time" or "priority
normal" first; then for every wake-up more than 250 µs late a line with two times in ns, between
which it did not run, by the clock that stamps arrivals.
Usage: witness.py CORE PERIOD
"""

import os
import sys
import time

LATE_NS = 250_000


def main():
    period_ns = int(sys.argv[2]) * 1000
    os.sched_setaffinity(0, {int(sys.argv[1])})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
        print("priority real-time", flush=True)
    except PermissionError:
        print("priority normal", flush=True)
    last = time.time_ns()
    while True:
        time.sleep(period_ns / 1e9)
        now = time.time_ns()
        if now - last > period_ns + LATE_NS:
            print(last, now, flush=True)
        last = now


main()
