# How fast things are here differs from run to run; what is told about does not.
$ CUDA_VISIBLE_DEVICES= gpufilter bench --size 1 --seconds 0 --threads 1 | sed -E 's/^cpu: .*/cpu: #/; s/^cuda: .*/cuda: #/; s/ +/ /g; s/ [0-9.]+\b/ #/g'
> cpu: #
> cuda: #
> picture: 1225x816 RGB u8, generated; every result is compared with golden's
> 
> filter where ms MP/s uploading computing downloading
> smooth golden # # - # -
> smooth cpu, # thread # # - # -
> normalize golden # # - # -
> normalize cpu, # thread # # - # -
> axis-sum golden # # - # -
> axis-sum cpu, # thread # # - # -
> hist golden # # - # -
> hist cpu, # thread # # - # -
> dot golden # # - # -
> dot cpu, # thread # # - # -
> compare golden # # - # -
> compare cpu, # thread # # - # -
# Tables fit into 80 columns; the name of a GPU, or why there is none, need not.
$ gpufilter bench --size 1 --seconds 0 | awk 'length > 80 && !/^(cuda( [0-9]+)?|not verified): /'
# A record; which can be read.
$ CUDA_VISIBLE_DEVICES= gpufilter bench --size 1 --seconds 0 -j 2 --json --type u16 --channels 1 'hist bins=8' | sed -E 's/(cpu|why_no_cuda|device)": "[^"]*"/\1": "#"/g; s/(expected )[^"]*/\1#/g; s/": [0-9][-+.e0-9]*/": #/g'
> {"schema": "gpufilter-bench", "version": #, "program": "0.1.0", "cpu": "#", "cuda": [], "why_no_cuda": "#", "image": {"width": #, "height": #, "channels": #, "type": "u16"}, "filters": [{"filter": "hist", "settings": "bins=8", "where": "golden", "backend": "golden", "device": "#", "seconds": #, "uploading": null, "computing": #, "downloading": null, "runs": #, "same": true}, {"filter": "hist", "settings": "bins=8", "where": "cpu, 1 thread", "backend": "cpu", "device": "#", "seconds": #, "uploading": null, "computing": #, "downloading": null, "runs": #, "same": true}, {"filter": "hist", "settings": "bins=8", "where": "cpu, 2 threads", "backend": "cpu", "device": "#", "seconds": #, "uploading": null, "computing": #, "downloading": null, "runs": #, "same": true}]}
$ gpufilter bench --size 1 --seconds 0 --json | if command -v python3 >/dev/null; then python3 -m json.tool; else cat; fi >/dev/null && echo read
> read
# One filter, several times; with settings in one argument.
$ CUDA_VISIBLE_DEVICES= gpufilter bench --size 1 --seconds 0 -j 1 smooth 'smooth radius=3 axis=xy' 'hist bins=8 extract=3' | grep -oE '^(smooth|hist)[^,]*(golden|cpu, 1 thread)'
> smooth                  golden
> smooth                  cpu, 1 thread
> smooth radius=3 axis=xy golden
> smooth radius=3 axis=xy cpu, 1 thread
> hist bins=8 extract=3   golden
> hist bins=8 extract=3   cpu, 1 thread
# What is not there, or does not fit.
$ gpufilter bench nothing
! gpufilter: bench: 'nothing': no such filter; see 'gpufilter --help'
[2]
$ gpufilter bench 'smooth radius=1000'
! gpufilter: --radius '1000': must be an integer from 0 to 127
[2]
$ gpufilter bench 'hist channel=r' --channels 1
! gpufilter: --channel r: the image is grey; leave --channel out to count its grey
[2]
$ gpufilter bench --size 1000
! gpufilter: bench: 8 pictures of 2999909610 bytes are more than --max-memory; use a smaller --size
[2]
$ gpufilter bench --size 0
! gpufilter: --size '0': must be an integer from 1 to 10000
[2]
$ gpufilter bench --seconds -1
! gpufilter: --seconds '-1': must be a number from 0 to 1000
[2]
$ gpufilter bench --backend golden
! gpufilter: --backend 'golden': must be all, cpu or cuda
[2]
$ gpufilter bench --backend cpu --device 0
! gpufilter: --device: is for --backend cuda or all
[2]
$ CUDA_VISIBLE_DEVICES= gpufilter bench --backend cuda 2>&1 | sed -E 's/(cuda: ).*/\1#/'; exit ${PIPESTATUS[0]}
> gpufilter: cuda: #
[3]
$ CUDA_VISIBLE_DEVICES= gpufilter bench --device 0 2>&1 | sed -E 's/(cuda: ).*/\1#/'; exit ${PIPESTATUS[0]}
> gpufilter: cuda: #
[3]
$ gpufilter bench --help
> Usage: gpufilter bench [OPTION]... [FILTER]...
> bench: time filters on this machine.
> 
> Draws a picture and filters it from memory to memory, on each backend. Prints
> the run of median length: ms and MP/s in all, and for how many ms of them each
> stage was busy; the stages overlap.
> Every CUDA device, or each of those in --device, is timed by itself.
> No times are printed of a filter that differs from golden in any bit: the
> exit code is then 1. FILTER is a name, or a name and its settings in one
> argument; without any all filters are timed with their default settings.
> 
> Options:
>       --size MP           millions of pixels of the picture (1 to 10000;
>                           default 24)
>       --channels N        its channels: grey, grey and alpha, RGB, or RGBA (1
>                           to 4; default 3)
>       --type TYPE         its samples (u8, u16, f32; default u8)
>       --seconds S         about how long each filter is run, three times at the
>                           least (0 to 1000; default 0.2)
>   -b, --backend NAME      who is timed beside golden (all, cpu, cuda; default
>                           all)
>       --json              print one line of JSON
>   -d, --device LIST       CUDA devices that share the work, and so the cuda
>                           backend: 0, 0,2 or all
>   -j, --threads N         CPU threads that compute; of many inputs as many are
>                           under way; 0: one a core (0 to 1024; default 0)
>       --simd LEVEL        vector instructions of the cpu backend (auto,
>                           portable, avx2, avx512; default auto)
>       --max-memory SIZE   most memory that one image may take: its strips, its
>                           result, samples and images that are held (default 4G)
>       --color WHEN        colours: on a terminal, unless NO_COLOR is set
>                           (auto), or always, or never (auto, always, never;
>                           default auto)
>   -h, --help              print this help
>   -V, --version           print the version
> 
> Examples:
>   gpufilter bench
>   gpufilter bench smooth 'smooth radius=8 axis=xy'
>   gpufilter bench 'hist bins=8 extract=3' --type u16 --channels 1
>   gpufilter bench --size 4 --json
