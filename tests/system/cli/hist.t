# On a terminal, the default is 32 lines; files and pipes get all bins.
$ python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter hist --color never samples/page.png | tr -d '\r' | sed -n '1,5p;/^(/,$p'
> samples/page.png: 850x1100 grey u8, by cpu
> 
>     bin  from   to    grey    share
>     0-7     0    7       4    0.00%  #
>    8-15     8   15       1    0.00%  #
> (256 bins, 8 per line; --bins 256 shows each)
> 
> grey: 935000 samples, min 0, p1 44, median 243, p99 249, max 254, mean 230.58115, std 39.28225
$ python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter hist --color never --channel all samples/cutout.png | tr -d '\r' | sed -n '3,8p' | cut -c 1-36
>     bin  from   to               sha
>     0-7     0    7  r  114430   49.6
>                     g  114430   49.6
>                     b  114430   49.6
>                     a  114430   49.6
>    8-15     8   15  r       0    0.0
$ python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter hist --bins 100 samples/page.png | wc -l; gpufilter hist samples/page.png | wc -l; python3 -c 'import pty, sys; pty.spawn(sys.argv[1:])' gpufilter hist --csv samples/page.png | wc -l
> 103
> 261
> 257
# Bars, the count of the extracted bin and its first values.
$ gpufilter hist samples/scene.png --bins 8 --extract 3
> samples/scene.png: 768x512 RGB u8, by cpu
> 
> bin  from   to   luma    share
>   0     0   31   3103    0.79%  ##
>   1    32   63  28793    7.32%  ##############
>   2    64   95  55664   14.16%  ###########################
>   3    96  127  68146   17.33%  #################################
>   4   128  159  97798   24.87%  ################################################
>   5   160  191  93704   23.83%  ##############################################
>   6   192  223  41176   10.47%  ####################
>   7   224  255   4832    1.23%  ##
> 
> Bin 3 [96, 127] count: 68146
>   values: 127 118 126 127 123 125 126 127 125 116 ...
$ LC_ALL=C.UTF-8 gpufilter hist samples/scene.png --bins 3
> samples/scene.png: 768x512 RGB u8, by cpu
> 
> bin  from   to    luma    share
>   0     0   84   68421   17.40%  ███████████████
>   1    85  169  213768   54.36%  ███████████████████████████████████████████████
>   2   170  255  111027   28.24%  ████████████████████████▍
$ gpufilter hist --channel all --bins 2 samples/cutout.png
> samples/cutout.png: 480x480 RGBA u8, by cpu
> 
> bin  from   to               share
>   0     0  127  r  123177   53.46%  ######################################
>                 g  144068   62.53%  ############################################
>                 b  140858   61.14%  ###########################################
>                 a  115295   50.04%  ###################################
>   1   128  255  r  107223   46.54%  #################################
>                 g   86332   37.47%  ##########################
>                 b   89542   38.86%  ###########################
>                 a  115105   49.96%  ###################################
# --range data reads the image twice, also from a pipe. JSON and CSV have the exact edges.
$ gpufilter hist --bins 3 --range data samples/ramp.pfm
> samples/ramp.pfm: 1024x4 grey f32, by cpu
> 
> bin    from      to  grey    share
>   0       0   6.397   952   23.24%  ###################
>   1   6.397  12.793  2188   53.42%  ############################################
>   2  12.793   19.19   956   23.34%  ###################
> 
> Range of the data: 0 to 19.189999
$ gpufilter hist --bins 3 --range data --csv - <samples/ramp.pfm
> bin,from,to,grey
> 0,0,6.396666208902995,952
> 1,6.396666208902995,12.79333241780599,2188
> 2,12.79333241780599,19.189998626708984,956
$ gpufilter hist -b golden --bins 2 --range data --extract 1 samples/gradient16.png
> samples/gradient16.png: 640x480 grey u16, by golden
> 
> bin   from     to    grey    share
>   0    251  32694  163078   53.09%  ############################################
>   1  32694  65136  144122   46.91%  #######################################
> 
> Range of the data: 251 to 65136
> Bin 1 [32694, 65136] count: 144122
>   values: 32722 32945 32914 33072 33086 33125 33274 33225 33373 33529 ...
$ gpufilter hist --json --bins 1 --range data samples/page.png | sed 's/.*"parameters"//'
> : {"bins": 1, "range": "data", "channel": "luma", "per-row": false, "statistics": false, "extract": null, "out": null, "mask": null}, "result": {"bins": {"bin": [0], "from": [0], "to": [254], "grey": [935000]}, "totals": {"channel": ["grey"], "samples": [935000], "nan": [0], "below": [0], "above": [0]}}}
$ { printf 'Pf\n2 1\n-1\n'; perl -e 'print pack("f<*", 9**9**9, -9**9**9)'; } >inf.pfm; gpufilter hist --range data inf.pfm
! gpufilter: inf.pfm: --range data: there is no finite sample; give --range LO,HI
[1]
$ gpufilter hist -q --bins 2 --range data inf.pfm samples/page.png --csv | tail -n 2
> samples/page.png,0,0,127,44015
> samples/page.png,1,127,254,890985
! gpufilter: inf.pfm: --range data: there is no finite sample; give --range LO,HI
# Edges for people.
$ gpufilter hist --bins 80 --range 0,1.5 --extract 3 samples/ramp.pfm | sed -n '3,7p;$p'
> bin     from       to  grey    share
>   0        0  0.01875     4    4.76%  #####################
>   1  0.01875   0.0375     0    0.00%
>   2   0.0375  0.05625     0    0.00%
>   3  0.05625    0.075     0    0.00%
> Bin 3 [0.05625, 0.075) count: 0
$ gpufilter hist --bins 80 --range 0,1.5 --csv samples/ramp.pfm | sed -n '4,5p'
> 2,0.0375,0.05625,0
> 3,0.05625,0.075,0
# --statistics alone.
$ gpufilter hist -q --statistics samples/ramp.pfm samples/page.png
$ gpufilter hist --bins 4 --range 2,9 samples/ramp.pfm
> samples/ramp.pfm: 1024x4 grey f32, by cpu
> 
> bin  from    to  grey    share
>   0     2  3.75   248   14.73%  ####################
>   1  3.75   5.5   352   20.90%  ############################
>   2   5.5  7.25   484   28.74%  #######################################
>   3  7.25     9   600   35.63%  ################################################
> 
> Outside the range in grey: 120 below 2, 2292 above 9
# Statistics, also of many files; with --statistics they are the first table.
$ gpufilter hist -q --statistics --csv samples/page.png samples/ramp.pfm samples/gradient16.png
> file,channel,count,min,max,mean,std,median,p1,p99
> samples/page.png,grey,935000,0,254,230.5811475935829,39.282249098192445,243,44,249
> samples/ramp.pfm,grey,4096,0,19.189999,9.6032812498961,4.128040940048879,9.5625,1,18.125
> samples/gradient16.png,grey,307200,251,65136,31557.159654947918,16622.017101652717,30943,2970,63944
$ for backend in golden cpu; do gpufilter hist -b $backend --bins 2 --statistics samples/ramp.pfm | tail -n 5; done
>   0     0  0.5    20    0.49%  #
>   1   0.5    1  4076   99.51%  #################################################
> 
> grey: 4096 samples, min 0, p1 1, median 9.5625, p99 18.125, max 19.189999, mean 9.603281, std 4.128041
> Outside the range in grey: 0 below 0, 4052 above 1, counted in the first and the last bin
>   0     0  0.5    20    0.49%  #
>   1   0.5    1  4076   99.51%  #################################################
> 
> grey: 4096 samples, min 0, p1 1, median 9.5625, p99 18.125, max 19.189999, mean 9.603281, std 4.128041
> Outside the range in grey: 0 below 0, 4052 above 1, counted in the first and the last bin
$ gpufilter hist --json --bins 1 --statistics --per-row samples/ramp.pfm | sed 's/.*"result"//'
> : {"statistics": {"channel": ["grey"], "count": [4096], "min": [0], "max": [19.189999], "mean": [9.6032812498961], "std": [4.128040940048879], "median": [9.5625], "p1": [1], "p99": [18.125]}, "rows": {"y": [0, 1, 2, 3], "channel": ["grey", "grey", "grey", "grey"], "bin": [0, 0, 0, 0], "count": [1024, 1024, 1024, 1024]}, "bins": {"bin": [0], "from": [0], "to": [1], "grey": [4096]}, "totals": {"channel": ["grey"], "samples": [4096], "nan": [0], "below": [0], "above": [4052]}}}
# The published check: 128 samples v[i] = (i mod 80)/100 in a PFM, on every backend.
$ { printf 'Pf\n128 1\n-1\n'; perl -e 'print pack("f<*", map { ($_ % 80) / 100 } 0..127)'; } >check.pfm; for backend in golden cpu; do gpufilter hist -b $backend --bins 8 --extract 0 --csv check.pfm; gpufilter hist -b $backend --bins 8 --extract 0 check.pfm | tail -n 2; done
> bin,from,to,grey
> 0,0,0.125,26
> 1,0.125,0.25,24
> 2,0.25,0.375,26
> 3,0.375,0.5,22
> 4,0.5,0.625,13
> 5,0.625,0.75,12
> 6,0.75,0.875,5
> 7,0.875,1,0
> Bin 0 [0, 0.125) count: 26
>   values: 0 0.01 0.02 0.03 0.04 0.05 0.06 0.07 0.08 0.09 ...
> bin,from,to,grey
> 0,0,0.125,26
> 1,0.125,0.25,24
> 2,0.25,0.375,26
> 3,0.375,0.5,22
> 4,0.5,0.625,13
> 5,0.625,0.75,12
> 6,0.75,0.875,5
> 7,0.875,1,0
> Bin 0 [0, 0.125) count: 26
>   values: 0 0.01 0.02 0.03 0.04 0.05 0.06 0.07 0.08 0.09 ...
# JSON is one line; from "result" on it is the same for every backend, number of threads and strip height.
$ gpufilter hist --json --bins 4 --extract 1,2 samples/page.png | sed -E 's/"seconds": [0-9.]+, "busy_seconds": .*, "parameters"/"seconds": #, "parameters"/; s/"device": "[^"]*"/"device": "#"/'
> {"schema": "gpufilter", "schema_version": 4, "program": "0.1.0", "command": "hist", "files": ["samples/page.png"], "image": {"width": 850, "height": 1100, "channels": 1, "type": "u8", "alpha": false}, "backend": "cpu", "device": "#", "bytes_in": 517277, "bytes_out": 0, "seconds": #, "parameters": {"bins": 4, "range": [0, 255], "channel": "luma", "per-row": false, "statistics": false, "extract": "1,2", "out": null, "mask": null}, "result": {"bins": {"bin": [0, 1, 2, 3], "from": [0, 64, 128, 192], "to": [63, 127, 191, 255], "grey": [18425, 25973, 28391, 862211]}, "totals": {"channel": ["grey"], "samples": [935000], "nan": [0]}, "extracted": {"bin": [1, 2], "from": [64, 128], "to": [127, 191], "count": [25973, 28391]}, "samples": {"bin": [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2], "x": [747, 757, 746, 747, 92, 93, 98, 104, 111, 112, 0, 0, 0, 1, 0, 0, 0, 1, 0, 454], "y": [53, 53, 54, 54, 55, 55, 55, 55, 55, 55, 13, 14, 16, 16, 19, 20, 21, 22, 23, 25], "channel": ["grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey", "grey"], "value": [113, 94, 117, 99, 118, 113, 122, 103, 91, 95, 190, 191, 191, 190, 191, 190, 190, 191, 191, 157]}}}
$ gpufilter hist --json --channel all --extract all --bins 5 samples/cutout.png | sed 's/.*"result"//' >want; for options in "-b golden" "-j 1" "-j 7" "--rows-per-strip 1" "--rows-per-strip 77" "--simd portable" "--max-memory 40M"; do gpufilter hist $options --json --channel all --extract all --bins 5 samples/cutout.png | sed 's/.*"result"//' | cmp - want; done
# All extracted samples are written to a file, in the order of the image.
$ gpufilter hist -q --bins 8 --extract 3 --out v.csv samples/scene.png; head -n 4 v.csv; wc -l <v.csv
> x,y,channel,value
> 71,0,luma,127
> 77,0,luma,118
> 729,0,luma,126
> 68147
$ gpufilter hist -q --bins 8 --extract 3,5 --out w.csv samples/scene.png; head -n 2 w.csv; grep -n '^5,' w.csv | head -n 1; wc -l <w.csv
> bin,x,y,channel,value
> 3,71,0,luma,127
> 68148:5,0,0,luma,169
> 161851
$ for backend in golden cpu; do for rows in 0 1 100; do gpufilter hist -b $backend --rows-per-strip $rows -q -f --bins 8 --extract 3 --out u.csv samples/scene.png; cmp v.csv u.csv; done; done
$ gpufilter hist -q --bins 8 --extract 3 --out v.npy samples/scene.png; head -c 10 v.npy | od -An -tx1; head -c 192 v.npy | strings | tail -n 1 | sed 's/ *$//'; wc -c <v.npy
>  93 4e 55 4d 50 59 01 00 b6 00
> {'descr': [('x', '<u8'), ('y', '<u8'), ('channel', '|u1'), ('value', '|u1')], 'fortran_order': False, 'shape': (68146,), }
> 1226820
$ gpufilter hist -q --bins 8 --extract 7 --out v.json samples/page.png; head -c 107 v.json
> {"schema":"gpufilter-samples","schema_version":1,"fields":["x","y","channel","value"],"samples":[
> [32,0,"gr
$ gpufilter hist --bins 8 --extract 3 --out - samples/scene.png 2>text | cmp - v.csv; tail -n 2 text
> Bin 3 [96, 127] count: 68146
>   values: 127 118 126 127 123 125 126 127 125 116 ...
$ gpufilter hist -q --bins 8 --extract 3 --out - samples/scene.png | cmp - v.csv
$ cat samples/scene.png | gpufilter hist -q --bins 8 --extract 3 --out - - | cmp - v.csv
# --sample-format overrides the extension; .npy can also be written to a pipe.
$ gpufilter hist -q --bins 8 --extract 3 --out - --sample-format npy samples/scene.png | cat | cmp - v.npy
$ gpufilter hist -q --bins 8 --extract 7 --out v.dat --sample-format json samples/page.png; cmp v.dat v.json
$ gpufilter hist -q --bins 8 --extract 7 --out - --sample-format text samples/page.png
! gpufilter: --sample-format 'text': must be csv, npy or json
[2]
# Messages printed with the data name the input.
$ gpufilter hist -q --bins 8 --extract 3 --out - - <samples/scene.png 2>&1 | cmp - v.csv; gpufilter hist -v --bins 8 - <samples/scene.png 2>&1 >/dev/null | head -n 1 | cut -d ' ' -f 1-2
> standard input:
# The mask contains the pixels of the bin; all others are transparent.
$ gpufilter hist -q --bins 8 --extract 3 --mask mask.pam samples/scene.png; head -n 7 mask.pam | strings; gpufilter hist --csv --channel a --bins 2 mask.pam
> WIDTH 768
> HEIGHT 512
> DEPTH 4
> MAXVAL 255
> TUPLTYPE RGB_ALPHA
> ENDHDR
> bin,from,to,a
> 0,0,127,325070
> 1,128,255,68146
$ gpufilter hist -q --bins 8 --extract 3 --mask - --format pam samples/scene.png | cmp - mask.pam
$ gpufilter hist -q --bins 8 --extract 3 --mask mask.png --out x.csv samples/scene.png; cmp x.csv v.csv; gpufilter compare mask.png mask.pam
> mask.png, mask.pam: 768x512 RGBA u8, by cpu
> 
> same: 1572864 samples
# One histogram per row.
$ gpufilter hist --per-row --bins 2 --csv samples/ramp.pfm
> y,channel,bin,count
> 0,grey,0,5
> 0,grey,1,1019
> 1,grey,0,5
> 1,grey,1,1019
> 2,grey,0,5
> 2,grey,1,1019
> 3,grey,0,5
> 3,grey,1,1019
# Invalid requests: one line, exit code 2, no output.
$ gpufilter hist --bins 8 --extract 8 samples/scene.png
! gpufilter: --extract '8': expected bins from 0 to 7 in ascending order, at most 64, such as 3 or 3,5; or all
[2]
$ gpufilter hist --bins 8 --extract 5,3 samples/scene.png
! gpufilter: --extract '5,3': expected bins from 0 to 7 in ascending order, at most 64, such as 3 or 3,5; or all
[2]
$ gpufilter hist --out v2.csv samples/scene.png
! gpufilter: --out: no bins to extract; name them with --extract
[2]
$ gpufilter hist --mask m2.png samples/scene.png
! gpufilter: --mask: no bins to extract; name them with --extract
[2]
$ gpufilter hist --channel r samples/page.png
! gpufilter: --channel r: the image is grey; omit --channel to count the grey channel
[2]
$ gpufilter hist --channel a samples/scene.png
! gpufilter: --channel a: the image has no alpha channel
[2]
$ gpufilter hist --range 2,1 samples/scene.png
! gpufilter: --range '2,1': must be two numbers LO,HI with LO below HI and at most 1e303 apart, or data
[2]
$ gpufilter hist --bins 0 samples/scene.png
! gpufilter: --bins '0': must be an integer from 1 to 65536
[2]
$ gpufilter hist --json --csv samples/scene.png
! gpufilter: --csv: cannot be combined with --json
[2]
$ gpufilter hist --bins 8 --extract 3 --json --out - samples/scene.png
! gpufilter: --json: standard output is already used for data; write the data to a file
[2]
$ gpufilter hist --bins 8 --extract 3 --mask - --out - samples/scene.png
! gpufilter: standard output: another option or step already writes to it; name another file
[2]
$ gpufilter hist --bins 8 --extract 3 --out v.txt samples/scene.png
! gpufilter: v.txt: unknown sample format; use the extension .csv, .npy or .json
[2]
$ gpufilter hist
! gpufilter: hist: expected IN, got 0 operands; see 'gpufilter hist --help'
[2]
$ gpufilter hist --plot - --json samples/scene.png
! gpufilter: --json: standard output is already used for data; write the data to a file
[2]
$ gpufilter hist --plot - --out - --extract 3 samples/scene.png
! gpufilter: --plot: standard output is already used for data; write the data to a file
[2]
# An option that depends on another one is rejected without it. Filters for which an option has no meaning
# do not have it.
$ for option in --log-scale "--plot-format svg" "--sample-format npy" "--format png" "--compression small" --strip; do gpufilter hist $option samples/scene.png; done
! gpufilter: --log-scale: requires --plot
! gpufilter: --plot-format: requires --plot
! gpufilter: --sample-format: requires --out
! gpufilter: --format: requires --mask
! gpufilter: --compression: requires --mask
! gpufilter: --strip: requires --mask
[2]
$ for option in --plot=p.png --log-scale --plot-format=svg --sample-format=npy --format=png --compression=small --strip --force; do gpufilter dot $option samples/page.png samples/page.png; done
! gpufilter: --plot: unknown option of dot (it is an option of axis-sum); see 'gpufilter dot --help'
! gpufilter: --log-scale: unknown option of dot (it is an option of axis-sum); see 'gpufilter dot --help'
! gpufilter: --plot-format: unknown option of dot (it is an option of axis-sum); see 'gpufilter dot --help'
! gpufilter: --sample-format: unknown option of dot (it is an option of hist); see 'gpufilter dot --help'
! gpufilter: --format: unknown option of dot (it is an option of smooth); see 'gpufilter dot --help'
! gpufilter: --compression: unknown option of dot (it is an option of smooth); see 'gpufilter dot --help'
! gpufilter: --strip: unknown option of dot (it is an option of smooth); see 'gpufilter dot --help'
! gpufilter: --force: unknown option of dot (it is an option of smooth); see 'gpufilter dot --help'
[2]
$ for option in --sample-format=npy --format=png --compression=small --strip; do gpufilter axis-sum $option samples/page.png; done
! gpufilter: --sample-format: unknown option of axis-sum (it is an option of hist); see 'gpufilter axis-sum --help'
! gpufilter: --format: unknown option of axis-sum (it is an option of smooth); see 'gpufilter axis-sum --help'
! gpufilter: --compression: unknown option of axis-sum (it is an option of smooth); see 'gpufilter axis-sum --help'
! gpufilter: --strip: unknown option of axis-sum (it is an option of smooth); see 'gpufilter axis-sum --help'
[2]
$ for option in --plot=p.png --sample-format=npy --csv; do gpufilter smooth $option samples/page.png p.png; done
! gpufilter: --plot: unknown option of smooth (it is an option of axis-sum); see 'gpufilter smooth --help'
! gpufilter: --sample-format: unknown option of smooth (it is an option of hist); see 'gpufilter smooth --help'
! gpufilter: --csv: unknown option of smooth (it is an option of axis-sum); see 'gpufilter smooth --help'
[2]
$ for command in axis-sum hist dot compare normalize; do echo $command: $(gpufilter $command --help | sed '1,/^$/d; /^Examples/,$d' | grep -oE -e '--(plot|plot-format|sample-format|format|compression) [A-Z]|--(log-scale|strip|force|csv) ' | sed 's/ .*//'); done
> axis-sum: --force --plot --plot-format --log-scale --csv
> hist: --format --compression --strip --force --plot --plot-format --log-scale --sample-format --csv
> dot: --csv
> compare: --format --compression --strip --force --csv
> normalize: --format --compression --strip --force
# Existing files are kept, and a failed run leaves no files.
$ gpufilter hist -q --bins 8 --extract 3 --out v.csv samples/scene.png
! gpufilter: v.csv: already exists; use --force to replace it
[1]
$ gpufilter hist -q --bins 8 --extract 3 --mask s.csv --out s.csv --format png samples/scene.png
! gpufilter: s.csv: another option or step already writes to it; name another file
[2]
$ gpufilter hist -q --bins 8 --extract 3 --mask ./s.csv --out ../here/s.csv --format png --force samples/scene.png
! gpufilter: ../here/s.csv: another option or step already writes to it; name another file
[2]
$ gpufilter hist -q --bins 8 --extract 3 --mask ./v.csv --out v.csv --format png --force samples/scene.png
! gpufilter: v.csv: another option or step already writes to it; name another file
[2]
$ head -n 1 v.csv
> x,y,channel,value
$ gpufilter hist -q --bins 8 --extract 3 --mask mask.png --out new.csv samples/scene.png; ls new.csv
! gpufilter: mask.png: already exists; use --force to replace it
! ls: cannot access 'new.csv': No such file or directory
[2]
$ head -c 20000 samples/scene.png >short.png; gpufilter hist -q --bins 8 --extract 3 --mask m3.png --out m3.csv short.png
! gpufilter: short.png: the PNG ends too early; get a complete copy
[1]
$ gpufilter hist -q --bins 8 --extract 3 --out - samples/scene.png >/dev/full
! gpufilter: standard output: cannot write: No space left on device
[1]
$ gpufilter hist --bins 8 --extract all --max-memory 2M --out m3.csv samples/scene.png
! gpufilter: samples/scene.png: extracted samples of several bins, and .npy to a pipe, are kept in memory until the end and need more than 1048540 bytes; raise --max-memory, or extract one bin to a file
[1]
$ gpufilter hist --per-row --bins 65536 --max-memory 100M samples/scene.png
! gpufilter: samples/scene.png: 268963848 bytes for the result are over the limit of 104857600; raise it with --max-memory
[1]
$ gpufilter hist samples/scene.png >/dev/full
! gpufilter: standard output: cannot write: No space left on device
[1]
$ ls -A | grep -E 'tmp|m3|new|s.csv|p.png'
[1]
