# SPDX-License-Identifier: GPL-2.0
# What cases.h asks, of Tcl's after

proc row {name text} { puts -nonewline "\t$name\t$text" }
proc now {} { expr {[clock microseconds] / 1e3} }
proc busy {delay} { set end [expr {[now] + $delay}]; while {[now] < $end} {} }
proc wait {delay} { after $delay set ::waited 1; vwait ::waited }

puts -nonewline "Tcl [info patchlevel]"

set texts {}
foreach {name value} {"LONG_MAX ms" 9223372036854775807 "2^63" 9223372036854775808 \
		      "UINT64_MAX" 18446744073709551615} {
	set fired 0
	if {[catch {after $value set fired 1} id]} {
		lappend texts "$name: refused"
	} else {
		wait 100
		lappend texts "$name: [expr {$fired ? "at once" : "waits"}]"
		after cancel $id
	}
}
row never [join $texts ";"]
row left "not said"

proc within {} { row done [expr {[catch {after info $::id}] ? "over" : "pending"}]
	puts -nonewline " in the callback"
	set ::done 1 }
set id [after 10 within]
vwait done

proc first {io} {
	busy 300
	set ::began [now]
	after 200 {set ::ended [now]}
	if {$io} { fileevent $::in readable {fileevent $::in readable {}} }
}
lassign [chan pipe] in out
puts $out x
flush $out
set texts {}
foreach io {0 1} {
	after 10 first $io
	vwait ended
	lappend texts [expr {$ended - $began < 150 ? "from the turn" : "from now"}]
}
row now [expr {[lindex $texts 0] eq [lindex $texts 1] ? [lindex $texts 0] :
	"[lindex $texts 0]; beside I/O [lindex $texts 1]"}]

proc many {} {
	expr {srand(1)}
	for {set n 0} {$n < 300} {incr n} {
		set i [expr {int(rand() * 100)}]
		if {[info exists ::ids($i)]} { after cancel $::ids($i) }
		set ::ids($i) [after 200 lappend ::order $i]
		set ::wanted [lsearch -all -inline -not -exact $::wanted $i]
		lappend ::wanted $i
	}
}
set order {}
set wanted {}
after 10 many
wait 500
row equal [expr {$order eq $wanted ? "as started" : "any"}]
row stall "no periods"

set count 0
set seen 0
proc again {} {
	if {!$::count} { fileevent $::in readable {set seen $count; fileevent $::in readable {}} }
	if {[incr ::count] < 100} { after 0 again } else { set ::done 1 }
}
after 10 again
vwait done
row again [expr {$seen && $seen < 100 ? "others in between" : "before all else"}]

set order {}
proc stop_other {i} { lappend ::order $i; after cancel $::both([expr {1 - $i}]) }
foreach i {0 1} { set both($i) [after 50 stop_other $i] }
busy 100
wait 200
row cancel [expr {[llength $order] == 1 ? "does not run" : "runs"}]
puts ""
