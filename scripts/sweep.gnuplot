# SPDX-License-Identifier: GPL-2.0
# The heat map of scripts/sweep, which puts the data in front of this file:
# $cells (column, row, percent of the column's best, text, 1 if it is the best), $names (row, name),
# $sizes (column, KiB), columns, rows, pattern, what, passes, auto_text (what stands in its row if it has no cells)
# Noise of a percent must not look like a difference: the scale ends at 90 % or below.
stats $cells using 3 nooutput
low = floor(STATS_min / 10) * 10
low = low > 90 ? 90 : low
high = STATS_max > 100 ? STATS_max : 100

# Room for the texts around, in pixels; narrow maps have wide cells.
width = 260.0 + (columns < 7 ? 735 : 105 * columns)
height = 210.0 + 52 * (rows + 1)
set terminal pngcairo noenhanced size width, height font "DejaVu Sans,11" background "white"
set lmargin at screen 95 / width
set rmargin at screen 1 - 165 / width
set tmargin at screen 1 - 85 / height
set bmargin at screen 105 / height
set label 1 "rr_min_io by block size: ".pattern.", MB/s" at screen 0.02, screen 1 - 25 / height left font ",14"
set label 2 what at screen 0.02, screen 1 - 52 / height left font ",9" textcolor rgb "#505050"
set label 3 sprintf("Median of %d. The colour compares within a column; the best fixed value of each column is framed; auto: its share of that best.", passes) \
	at screen 0.02, screen 22 / height left font ",9" textcolor rgb "#505050"
set label 4 auto_text at first (columns + 1) / 2.0, first -0.3 center textcolor rgb "#505050"
unset key
set border 0
set tics scale 0
set xrange [0.5:columns + 0.5]
set yrange [-0.8:rows + 0.5]
set xlabel "block size, KiB" offset 0,0.3
set ylabel "rr_min_io" offset -0.5
set colorbox user origin screen 1 - 140 / width, screen 105 / height size screen 22 / width, screen 1 - 190 / height
set xtics ()
set ytics ()
do for [i = 1:|$sizes|] { set xtics add (word($sizes[i], 2) real(word($sizes[i], 1))) }
do for [i = 1:|$names|] { set ytics add (word($names[i], 2) real(word($names[i], 1))) }

set cbrange [low:high]
set cblabel "% of the column's best" offset 1
set cbtics scale 0
set palette defined (0 "#ffffd9", 1 "#edf8b1", 2 "#c7e9b4", 3 "#7fcdbb", 4 "#41b6c4", 5 "#1d91c0", 6 "#225ea8", 7 "#0c2c84")
set style fill solid 1.0 noborder
# White on the dark end of the palette.
ink(p) = (p - low) / (high - low) > 0.6 ? 0xffffff : 0x202020
plot $cells using 1:2:(0.485):(0.47):3 with boxxyerror linecolor palette, \
     $cells using ($5 == 1 ? $1 : NaN):2:(0.465):(0.44) with boxxyerror fillstyle empty linecolor rgb "#d62728" linewidth 2.5, \
     $cells using 1:($2 < 0 ? $2 + 0.17 : $2):4:(ink($3)) with labels font ",11" textcolor rgb variable
