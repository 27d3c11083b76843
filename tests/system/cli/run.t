# gpufilter run: parsing, usage errors, and chains.
# The file of a chain of one step is that of the command; every form of the same steps writes it.
$ gpufilter gaussian --sigma 2 samples/scene.png a.png && gpufilter run samples/scene.png ! gaussian sigma=2 ! write b.png && cmp a.png b.png
$ gpufilter run -p 'gaussian --sigma=2' samples/scene.png c.png && cmp a.png c.png
$ printf '# blur\n\n  gaussian -s 2  # pixels\nwrite d.png\n' >steps.txt; gpufilter run --pipeline steps.txt samples/scene.png && cmp a.png d.png
$ printf '\357\273\277gaussian sigma=2\r\n' >windows.txt; gpufilter run --pipeline windows.txt samples/scene.png w.png && cmp a.png w.png
$ printf 'gaussian sigma=2' | gpufilter run --pipeline - samples/scene.png - >e.png && cmp a.png e.png
$ gpufilter run samples/scene.png ! gaussian sigma=2 ! write f format=png && cmp a.png f
$ gpufilter run --compression small samples/scene.png ! gaussian sigma=2 ! write g.png && gpufilter run samples/scene.png ! gaussian sigma=2 ! write h.png -c small && cmp g.png h.png && gpufilter compare -q a.png g.png
# Reports.
$ gpufilter run --csv samples/scene.png ! hist bins=2
> bin,from,to,luma
> 0,0,127,155706
> 1,128,255,237510
$ gpufilter run samples/scene.png ! hist bins=2
> samples/scene.png: 768x512 RGB u8, by cpu
> 
> step 1, hist: 768x512 RGB u8
> 
> bin  from   to    luma    share
>   0     0  127  155706   39.60%  ###############################
>   1   128  255  237510   60.40%  ###############################################
$ gpufilter run --json samples/scene.png ! gaussian ! write i.png | grep -o '"command": "run"\|"output": "i.png"\|"steps": .*"'
> "command": "run"
> "output": "i.png"
> "steps": [{"step": 1, "filter": "gaussian", "settings": {"sigma": [1, 1], "truncate": 4, "edge": "mirror"}}, {"step": 2, "filter": "write", "output": "i.png", "image": {"width": 768, "height": 512, "channels": 3, "type": "u8", "alpha": false}, "clipped": 660, "bytes_out"
$ gpufilter run --json samples/scene.png ! hist bins=2 | grep -o '"steps": .*'
> "steps": [{"step": 1, "filter": "hist", "settings": {"bins": 2, "range": [0, 255], "channel": "luma", "per-row": false, "statistics": false, "extract": null, "out": null, "mask": null}, "result": {"bins": {"bin": [0, 1], "from": [0, 128], "to": [127, 255], "luma": [155706, 237510]}, "totals": {"channel": ["luma"], "samples": [393216], "nan": [0]}}}]}
$ gpufilter run -v samples/scene.png ! gaussian ! write j.png 2>&1 | sed -n '/step/s/, [0-9.]* s$//p'
>   step 1, gaussian: sigma=1 truncate=4 edge=mirror
$ gpufilter run samples/scene.png ! median ! hist bins=2 ! write n.png ! axis-sum ! input ! compare b.png | grep '^step\|^different'
> step 2, hist: 768x512 RGB u8
> step 4, axis-sum: 768x512 RGB u8
> step 5, compare: 768x512 RGB u8
> different: 1124151 of 1179648 samples, largest difference 177; first at x 0, y 0, channel r: 132 and 126
$ gpufilter run --json samples/scene.png ! hist bins=2 ! compare a.png | grep -o '"filter": "[a-z]*"\|"passed": [a-z]*\|"file": "[a-z.]*"'
> "filter": "hist"
> "filter": "compare"
> "file": "a.png"
> "passed": false
# A difference is exit code 1.
$ gpufilter run -q samples/scene.png ! compare samples/scene.png
$ gpufilter run samples/scene.png ! compare a.png | tail -n 1
> different: 1124151 of 1179648 samples, largest difference 177; first at x 0, y 0, channel r: 132 and 126
$ gpufilter run -q samples/scene.png ! compare a.png
[1]
# Outputs.
$ gpufilter run samples/scene.png ! median ! write a.png
! gpufilter: a.png: already exists; use --force to replace it
[1]
$ gpufilter run -f samples/scene.png ! gaussian sigma=2 ! write a.png && cmp a.png b.png
$ cp a.png k.png && gpufilter run k.png ! median ! write ./k.png
! gpufilter: step 2, write: ./k.png: is the input; use another name, or --force to replace it
[2]
$ gpufilter run -f k.png ! median ! write k.png
$ gpufilter run samples/scene.png ! median ! write l.png ! gaussian ! write l.png
! gpufilter: step 4, write: l.png: step 2 writes it, too; use another name
[2]
$ gpufilter run samples/scene.png ! median ! write - ! gaussian ! write -
! gpufilter: step 4, write: -: step 2 writes it, too; use another name
[2]
$ gpufilter run --json samples/scene.png ! median ! write -
! gpufilter: --json: standard output is already used for data; write the data to a file
[2]
$ gpufilter run samples ! median ! write l.png
! gpufilter: samples: is a directory; to process its images use 'gpufilter run -R samples --out-dir OUT'
[1]
# Wrong operands.
$ gpufilter run
! gpufilter: run: expected steps, as in 'gpufilter run IN ! median ! write OUT'; see 'gpufilter run --help'
[2]
$ gpufilter run samples/scene.png
! gpufilter: run: expected steps, as in 'gpufilter run IN ! median ! write OUT'; see 'gpufilter run --help'
[2]
$ gpufilter run samples/scene.png !
! gpufilter: pipeline: no filter; add one, such as median, or depth keep to change the file only
[2]
$ gpufilter run ! median ! write l.png
! gpufilter: run: expected IN, got 0 operands; for several inputs use --out-dir
[2]
$ gpufilter run -p median
! gpufilter: run: expected IN [OUT], got 0 operands; for several inputs use --out-dir
[2]
$ gpufilter run -p median samples/scene.png
! gpufilter: median: produces an image; add a writer as the next step
[2]
$ gpufilter run -p median samples/scene.png l.png m.png
! gpufilter: run: expected IN [OUT], got 3 operands; for several inputs use --out-dir
[2]
$ gpufilter run -p median samples/scene.png ! write l.png
! gpufilter: run: expected steps once: after the first !, in --steps or in --pipeline
[2]
$ gpufilter run -p median --pipeline steps.txt samples/scene.png l.png
! gpufilter: run: expected steps once: after the first !, in --steps or in --pipeline
[2]
$ gpufilter run --pipeline missing.txt samples/scene.png l.png
! gpufilter: --pipeline 'missing.txt': cannot open: No such file or directory
[1]
$ : >empty.txt; gpufilter run --pipeline empty.txt samples/scene.png
! gpufilter: --pipeline 'empty.txt': is empty; write one step per line
[2]
$ printf 'gaussian\n\0median\n' >nul.txt; gpufilter run --pipeline nul.txt samples/scene.png l.png
! gpufilter: --pipeline 'nul.txt': contains a NUL byte; name a file of UTF-8 text with one step per line
[2]
$ gpufilter run samples/scene.png median ! write l.png
! gpufilter: run: 'median' is a step; write a ! before it, as a word of its own
[2]
$ gpufilter run samples/scene.png '!median' ! write l.png
! gpufilter: run: 'median' is a step; write a ! before it, as a word of its own
[2]
$ gpufilter run --out-dir out --name '{stem}-2{ext}' samples/scene.png ! median ! write '{stem}{ext}'
! gpufilter: --name: requires --steps or --pipeline; give the template to write, as in ! write '{stem}-2{ext}'
[2]
$ gpufilter run --out-dir out samples/scene.png samples/scene.png ! median ! write '{stem}{ext}'
! gpufilter: out/scene.png: is the output of both samples/scene.png and samples/scene.png; use a template with {index}, such as '{index}-{stem}{ext}'
[2]
$ gpufilter run --out-dir out samples/scene.png ! median ! write '{stme}{ext}'
! gpufilter: step 2, write: '{stme}{ext}': invalid template; use {stem}, {ext}, {name}, {index} or {index:DIGITS}, and {{ and }} for braces
[2]
$ gpufilter run samples/scene.png samples/page.png ! median ! write l.png
! gpufilter: run: expected --out-dir for the outputs of several inputs
[2]
$ gpufilter run --linear samples/scene.png ! median ! write l.png
! gpufilter: --linear: unknown option of run (it is an option of smooth); see 'gpufilter run --help'
[2]
$ gpufilter run --plot l.png samples/scene.png ! hist
! gpufilter: --plot: unknown option of run (it is an option of axis-sum); see 'gpufilter run --help'
[2]
$ gpufilter run --csv samples/scene.png ! gaussian ! write l.png
! gpufilter: --csv: prints the table of one step, and 0 steps measure; --json prints all results
[2]
$ gpufilter run --csv samples/scene.png ! hist ! axis-sum
! gpufilter: --csv: prints the table of one step, and 2 steps measure; --json prints all results
[2]
$ gpufilter run --pipeline - - l.png
! gpufilter: run: standard input can be read only once; name the file of the steps
[2]
$ gpufilter run - ! median ! dot - ! hist
! gpufilter: step 2, dot: standard input can be read only once; name one of the files
[2]
$ gpufilter run --page all samples/scene.png ! median ! hist
! gpufilter: --page all: the pages of a pipeline that changes or writes the image are not measured; choose one with --page N
[2]
$ gpufilter run --out-dir out samples/scene.png ! hist
! gpufilter: --out-dir: no step writes an image; add ! write '{stem}{ext}'
[2]
# Wrong steps.
$ gpufilter run samples/scene.png ! gausian ! write l.png
! gpufilter: step 1, gausian: no such step; did you mean gaussian?
[2]
$ gpufilter run samples/scene.png ! gaussian sigma=-1 ! write l.png
! gpufilter: step 1, gaussian: --sigma '-1': must be a number from 0.2 to 120, or two as X,Y, of which one may be 0
[2]
$ gpufilter run samples/scene.png ! gaussian bins=8 ! write l.png
! gpufilter: step 1, gaussian: bins: unknown option of a step; see 'gpufilter gaussian --help'; options of the whole run are given before the input
[2]
$ gpufilter run samples/scene.png ! median gaussian ! write l.png
! gpufilter: step 1, median: 'gaussian' is superfluous; write options as --NAME VALUE or NAME=VALUE, and ! between steps
[2]
$ gpufilter run samples/scene.png ! median
! gpufilter: median: produces an image; add a writer as the next step
[2]
$ gpufilter run -p "median ! write 'l.png" samples/scene.png
! gpufilter: pipeline: a quote has no end; close it, or quote the word with the other kind
[2]
# The plan.
$ gpufilter run --dry-run --backend cpu -j 2 samples/scene.png ! linear ! gaussian sigma=2 ! write z.png ! normalize ! hist ! input ! compare a.png | sed 's/, [a-z0-9]*)$/)/'
> samples/scene.png: 768x512 RGB u8
>   step 1, linear:
>     to 768x512 RGB f32
>   step 2, gaussian: sigma=2 truncate=4 edge=mirror
>     to 768x512 RGB f32, rows above and below: 8, 8
>   step 3, write: z.png
>     of 768x512 RGB u8
>   step 4, normalize:
>     to 768x512 RGB f32, after axis-sum
>   step 5, hist: bins=256 range=0,1 channel=luma
>     of 768x512 RGB f32, 2.1 kB for its result
>   step 6, compare: a.png (reads the input)
>     of 768x512 RGB u8
>   backend: cpu (2 threads)
>   strips: 33 of 16 rows, 1.6 MB in memory
$ gpufilter run --dry-run --max-memory 20k samples/scene.png ! gaussian sigma=2 ! write z.png
! gpufilter: samples/scene.png: strips of 17 rows need more than 20480 bytes; raise --max-memory
[1]
$ gpufilter run samples/scene.png ! write z.png
! gpufilter: pipeline: no filter; add one, such as median, or depth keep to change the file only
[2]
# Batches.
$ gpufilter run -q --out-dir out -p 'gaussian sigma=2' samples/scene.png && cmp a.png out/scene.png
$ gpufilter run --out-dir out --dry-run samples/scene.png samples/page.png ! median ! write '{stem}-m.png'
> out/scene-m.png
> out/page-m.png
! dry run: 2 to do, 0 failed, 0 skipped
$ gpufilter run --out-dir out samples/scene.png ! median ! write '{stem}'
! gpufilter: step 2, write: 'scene': no extension; end the template with {ext} or a known extension such as .png, or use --format
[2]
$ gpufilter run --out-dir out samples/scene.png ! median ! write 'a/{stem}.png'
! gpufilter: step 2, write: 'a/{stem}.png': must not contain a directory; use --out-dir for the directory; --recursive keeps subdirectories
[2]
$ gpufilter run -q --csv samples/scene.png samples/scene.png ! hist bins=2
> file,bin,from,to,luma
> samples/scene.png,0,0,127,155706
> samples/scene.png,1,128,255,237510
> samples/scene.png,0,0,127,155706
> samples/scene.png,1,128,255,237510
$ gpufilter run --csv samples/scene.png samples/scene.png ! hist ! axis-sum
! gpufilter: --csv: prints the table of one step, and 2 steps measure; --json prints all results
[2]
$ ls
> a.png
> b.png
> c.png
> d.png
> e.png
> empty.txt
> f
> g.png
> h.png
> i.png
> j.png
> k.png
> n.png
> nul.txt
> out
> samples
> steps.txt
> w.png
> windows.txt
