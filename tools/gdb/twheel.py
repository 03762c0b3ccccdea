# SPDX-License-Identifier: GPL-2.0
"""
Wheels in gdb: of a program that libtwheel keeps them in, with the library's debug symbols; and of
the module, in a kernel behind QEMU's gdbstub or in a dump, with the symbols of twheel.ko.

    source /usr/share/twheel/gdb/twheel.py
    twheel list             the wheels: in the kernel all; in a program those that a variable of
                            any thread's frames points to
    twheel slots WHEEL      its slots that have timers, and of each the first timers
    twheel timers WHEEL     all of its timers

WHEEL is an expression that points to a struct twheel, user_wheel or tw_wheel. Nothing is called
in the program, so that it may be stopped anywhere, and be a core file. What is read while a call
changes the wheel may be half changed: the sums, which are checked, say so.
"""
import gdb

SHOWN = 4       # timers of a slot


def members(value):
    return {field.name for field in value.type.fields()}


def struct_of(value):
    """The struct that an expression is, or points to"""
    kind = value.type.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR:
        if not int(value):
            raise gdb.GdbError("this is no wheel: the pointer is NULL")
        value = value.dereference()
    value = value.cast(value.type.unqualified().strip_typedefs())
    if value.type.code != gdb.TYPE_CODE_STRUCT:
        raise gdb.GdbError("this is no wheel, but %s" % value.type)
    return value


def context_of(value):
    """What has the wheel: the module's struct twheel, or a struct user_wheel; or the wheel alone"""
    value = struct_of(value)
    if value.type.name == "twheel" and "events" in members(value):
        if not int(value["user"]):
            raise gdb.GdbError("this wheel is one of the kernel's: look at it there")
        value = struct_of(value["user"])
    if value.type.name not in ("twheel", "user_wheel", "tw_wheel"):
        raise gdb.GdbError("this is no wheel, but struct %s" % value.type.name)
    return value


def wheel_of(value):
    """The struct tw_wheel in which the timers are"""
    value = context_of(value)
    return value if value.type.name == "tw_wheel" else value["wheel"]


def put_off(value):
    """How many timers the library holds back: they are put into the wheel at the next call"""
    value = context_of(value)
    return int(value["nr_later"]) if value.type.name == "user_wheel" else 0


def bound(array):
    """How many elements; of a value or a field"""
    low, high = array.type.range()
    return high - low + 1


def timers_of(wheel, first):
    """The timers of a list, as (index, node)"""
    table = wheel["table"].dereference()
    node_type = gdb.lookup_type("struct tw_node")
    chunk_nodes = 64 * bound(gdb.lookup_type("struct tw_chunk")["free"])
    most_there = int(wheel["pending"]) + int(wheel["ready"]["count"])
    index, seen = int(first), 0
    while index:
        if index // chunk_nodes >= int(table["nr_chunks"]) or seen > most_there:
            raise gdb.GdbError("the list goes nowhere: timer %d after %d others" % (index, seen))
        at = int(table["dir"][index // chunk_nodes]) + index * node_type.sizeof
        node = gdb.Value(at & (1 << 64) - 1).cast(node_type.pointer()).dereference()
        yield index, node
        index, seen = int(node["next"]), seen + 1


def slots_of(wheel):
    """(level, slot, its width in ticks, its lists, how many timers it says it has)"""
    size = 64 * bound(wheel["occupied"][0])
    for level in range(int(wheel["depth"])):
        there = wheel["level"][level]
        words = [int(wheel["occupied"][level][i]) for i in range(bound(wheel["occupied"][level]))]
        lists = 1 << int(there["stripe_bits"])
        for nr in range(size):
            if words[nr // 64] >> nr % 64 & 1:
                yield (level, nr, 1 << int(there["shift"]),
                       [there["lists"][nr * lists + i] for i in range(lists)],
                       int(wheel["slots"][level * size + nr]["count"]))


def line_of(wheel, index, node):
    ahead = int(node["deadline"]) - int(wheel["done_ns"])
    return "    id %#x  deadline %d ns (%+.3f ms)  %s" % (
        int(node["gen"]) << 32 | index, int(node["deadline"]), ahead / 1e6,
        "periodic" if int(node["flags"]) & 0x8000 else "user_data %d" % int(node["user_data"]))


def print_slots(value, most):
    wheel, later = wheel_of(value), put_off(value)
    sum_slots = sum_ready = 0
    for level, nr, width, lists, count in slots_of(wheel):
        found = [timer for one in lists for timer in timers_of(wheel, one["first"])]
        sum_slots += len(found)
        print("level %d slot %d (%d ticks wide): %d timers%s" % (
            level, nr, width, len(found),
            "" if len(found) == count else ", but it says %d: was a call at it?" % count))
        for index, node in found[:most]:
            print(line_of(wheel, index, node))
        if most is not None and len(found) > most:
            print("    ... and %d more" % (len(found) - most))
    ready = wheel["ready"]
    for i in range(bound(ready["list"])):
        found = list(timers_of(wheel, ready["list"][i]["first"]))
        sum_ready += len(found)
        for index, node in found[:most]:
            print("ready:\n" + line_of(wheel, index, node))
    same = (sum_slots, sum_ready) == (int(wheel["pending"]), int(ready["count"]))
    print("%d pending, %d ready, %d put off%s" % (sum_slots, sum_ready, later, "" if same else
          ", but the wheel says %d and %d: was a call at it?" % (
              int(wheel["pending"]), int(ready["count"]))))


def of_kernel():
    """Each struct twheel of the module, or None where there is no module"""
    head = gdb.lookup_static_symbol("tw_all") or gdb.lookup_global_symbol("tw_all")
    if not head:
        return None
    head, kind = head.value(), gdb.lookup_type("struct twheel")
    offset = next(field.bitpos // 8 for field in kind.fields() if field.name == "all")
    found, at = [], head["next"]
    while int(at) != int(head.address):
        one = gdb.Value(int(at) - offset).cast(kind.pointer())
        # A process that reads the counters has a mark in the list, on its stack: that is no wheel.
        try:
            if int(one["wheel"]["table"]) == int(one["table"].address):
                found.append(one)
        except gdb.MemoryError:
            pass
        at = at["next"]
    return found


def of_frames():
    """The wheels that variables of the program's frames point to, with the variable's name"""
    found, selected = {}, gdb.selected_thread()
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = gdb.newest_frame()
        while frame:
            try:
                block = frame.block()
            except RuntimeError:
                block = None
            while block:
                for symbol in block:
                    kind = symbol.type and symbol.type.strip_typedefs()
                    if not symbol.is_variable and not symbol.is_argument or \
                            kind.code != gdb.TYPE_CODE_PTR or \
                            kind.target().unqualified().name not in ("twheel", "user_wheel"):
                        continue
                    try:
                        value = symbol.value(frame)
                        at = int(wheel_of(value).address)
                    except (gdb.error, gdb.GdbError):
                        continue
                    found.setdefault(at, (symbol.name, value))
                block = block.superblock
            frame = frame.older()
    if selected:
        selected.switch()
    return found.values()


class Twheel(gdb.Command):
    """Wheels of libtwheel, and of the module: twheel list, twheel slots WHEEL, twheel timers WHEEL"""

    def __init__(self):
        super().__init__("twheel", gdb.COMMAND_DATA, gdb.COMPLETE_EXPRESSION)

    def invoke(self, argument, from_tty):
        what, _, rest = argument.strip().partition(" ")
        if what == "list" and not rest:
            kernel = of_kernel()
            found = [("number %d" % int(one["nr"]), one) for one in kernel] \
                if kernel is not None else list(of_frames())
            for name, value in found:
                wheel = wheel_of(value)
                print("(%s)%#x  %s: %d pending, %d ready, %d put off, at tick %d" % (
                    value.type, int(value), name, int(wheel["pending"]),
                    int(wheel["ready"]["count"]), put_off(value), int(wheel["clk"])))
            if not found:
                print("no wheel is found: in a program, go up to a frame that has one, with symbols")
        elif what in ("slots", "timers") and rest:
            print_slots(gdb.parse_and_eval(rest), SHOWN if what == "slots" else None)
        else:
            raise gdb.GdbError(self.__doc__)


Twheel()
