# SPDX-License-Identifier: GPL-2.0
# The picture of scripts/demo, which puts the data in front of this file:
# $rates (second, MB/s of path 1..4), $states (second, row, A or F, half the width), $events (second, text),
# p1..p4 (names of the paths), heading, seconds (length of the run)
set terminal pngcairo size 1100,600 font "DejaVu Sans,11" background "white"
set multiplot
set lmargin at screen 0.08
set rmargin at screen 0.97
set xrange [0:seconds]
set border 3 lc rgb "#606060"
set tics nomirror out

# Above: throughput, the paths stacked, the events as labelled lines.
set tmargin at screen 0.875
set bmargin at screen 0.34
set label 1 heading at screen 0.08, screen 0.955 left font ",13"
stats $rates using ($2 + $3 + $4 + $5) nooutput
top = STATS_max * 1.18
set yrange [0:top]
set ylabel "MB/s" offset 1
set grid ytics lc rgb "#e0e0e0"
set xtics 1 format ""
set key at screen 0.08, screen 0.905 left center horizontal Left reverse samplen 1.2 width 2 font ",10"
plot $rates using 1:2 with filledcurves y1=0 lc rgb "#1f77b4" title "group 1: ".p1, \
     $rates using 1:2:($2 + $3) with filledcurves lc rgb "#8fc1e8" title p2, \
     $rates using 1:($2 + $3):($2 + $3 + $4) with filledcurves lc rgb "#e0701b" title "group 2: ".p3, \
     $rates using 1:($2 + $3 + $4):($2 + $3 + $4 + $5) with filledcurves lc rgb "#f7b884" title p4, \
     $events using 1:(0):(0):(top * 0.92) with vectors nohead lw 1.5 dt 2 lc rgb "#202020" notitle, \
     $events using 1:(top * 0.96):2 with labels center font ",10" notitle

# Below: the state of each path in each second, as the map reports it.
unset key
unset grid
set tmargin at screen 0.30
set bmargin at screen 0.10
set yrange [-0.6:3.6]
unset ylabel
set label 1 "A = active, F = failed" at screen 0.97, screen 0.035 right font ",9"
set ytics (p1 3, p2 2, p3 1, p4 0) scale 0
set xtics 1 format "%g"
set xlabel "seconds"
set style fill solid 1.0
plot $states using 1:2:4:(0.36) with boxxyerror \
         lc rgb "#cfe8cf" notitle, \
     $states using 1:(strcol(3) eq "F" ? $2 : NaN):4:(0.36) with boxxyerror lc rgb "#d62728" notitle, \
     $states using 1:2:3:(strcol(3) eq "F" ? 0xffffff : 0x406040) with labels font ",8" \
         tc rgb variable notitle
unset multiplot
