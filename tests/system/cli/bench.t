# Measured speeds vary between runs; the other output does not.
$ CUDA_VISIBLE_DEVICES= gpufilter bench --size 1 --seconds 0 --threads 1 | sed -E 's/^cpu: .*/cpu: #/; s/^cuda: .*/cuda: #/; s/ +/ /g; s/ [0-9.]+\b/ #/g'
> cpu: #
> cuda: #
> image: 1225x816 RGB u8, generated; every result is compared with golden
> 
> filter target ms MP/s uploading computing downloading
> smooth golden # # - # -
> smooth cpu, # thread # # - # -
> gaussian golden # # - # -
> gaussian cpu, # thread # # - # -
> box golden # # - # -
> box cpu, # thread # # - # -
> sharpen golden # # - # -
> sharpen cpu, # thread # # - # -
> convolve golden # # - # -
> convolve cpu, # thread # # - # -
> median golden # # - # -
> median cpu, # thread # # - # -
> percentile golden # # - # -
> percentile cpu, # thread # # - # -
> erode golden # # - # -
> erode cpu, # thread # # - # -
> dilate golden # # - # -
> dilate cpu, # thread # # - # -
> resize golden # # - # -
> resize cpu, # thread # # - # -
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
# Tables fit into 80 columns, except the name of a GPU or the reason for its absence.
$ gpufilter bench --size 1 --seconds 0 | awk 'length > 80 && !/^cuda( [0-9]+)?: /'
# JSON output is valid.
$ CUDA_VISIBLE_DEVICES= gpufilter bench --size 1 --seconds 0 -j 2 --json --type u16 --channels 1 'hist bins=8' | sed -E 's/(cpu|cuda_error|device)": "[^"]*"/\1": "#"/g; s/(expected )[^"]*/\1#/g; s/": [0-9][-+.e0-9]*/": #/g'
> {"schema": "gpufilter-bench", "schema_version": #, "program": "0.1.0", "cpu": "#", "cuda": [], "cuda_error": "#", "image": {"width": #, "height": #, "channels": #, "type": "u16", "alpha": false}, "filters": [{"filter": "hist", "settings": "bins=8", "parameters": {"bins": #, "range": [0, 65535], "channel": "luma", "per-row": false, "statistics": false, "extract": null, "out": null, "mask": null}, "target": "golden", "backend": "golden", "device": "#", "seconds": #, "uploading": null, "computing": #, "downloading": null, "runs": #, "matches_golden": true}, {"filter": "hist", "settings": "bins=8", "parameters": {"bins": #, "range": [0, 65535], "channel": "luma", "per-row": false, "statistics": false, "extract": null, "out": null, "mask": null}, "target": "cpu, 1 thread", "backend": "cpu", "device": "#", "seconds": #, "uploading": null, "computing": #, "downloading": null, "runs": #, "matches_golden": true}, {"filter": "hist", "settings": "bins=8", "parameters": {"bins": #, "range": [0, 65535], "channel": "luma", "per-row": false, "statistics": false, "extract": null, "out": null, "mask": null}, "target": "cpu, 2 threads", "backend": "cpu", "device": "#", "seconds": #, "uploading": null, "computing": #, "downloading": null, "runs": #, "matches_golden": true}]}
$ gpufilter bench --size 1 --seconds 0 --json | if command -v python3 >/dev/null; then python3 -m json.tool; else cat; fi >/dev/null && echo read
> read
# One filter several times, with settings in one argument.
$ CUDA_VISIBLE_DEVICES= gpufilter bench --size 1 --seconds 0 -j 1 smooth 'smooth radius=3 axis=xy' 'hist bins=8 extract=3' | grep -oE '^(smooth|hist)[^,]*(golden|cpu, 1 thread)'
> smooth                  golden
> smooth                  cpu, 1 thread
> smooth radius=3 axis=xy golden
> smooth radius=3 axis=xy cpu, 1 thread
> hist bins=8 extract=3   golden
> hist bins=8 extract=3   cpu, 1 thread
# Unknown names and invalid settings.
$ gpufilter bench nothing
! gpufilter: bench: 'nothing': no such filter; see 'gpufilter --help'
[2]
$ gpufilter bench 'smooth radius=1000'
! gpufilter: --radius '1000': must be an integer from 0 to 127
[2]
$ gpufilter bench 'hist channel=r' --channels 1
! gpufilter: --channel r: the image is grey; omit --channel to count the grey channel
[2]
$ gpufilter bench --size 1000
! gpufilter: bench: 8 images of 2999909610 bytes exceed --max-memory; use a smaller --size, or raise --max-memory
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
! gpufilter: --device: requires --backend cuda or all
[2]
$ CUDA_VISIBLE_DEVICES= gpufilter bench --backend cuda 2>&1 | sed -E 's/(cuda: ).*/\1#/'; exit ${PIPESTATUS[0]}
> gpufilter: cuda: #
[3]
$ CUDA_VISIBLE_DEVICES= gpufilter bench --device 0 2>&1 | sed -E 's/(cuda: ).*/\1#/'; exit ${PIPESTATUS[0]}
> gpufilter: cuda: #
[3]
$ gpufilter bench --help | perl -0ne 'while (/^ +(?:(-.), )? *(--[a-z-]+)( [A-Z]+)?(.*?)(?=^ +(?:-., )? *--|^\S|\z)/gms) { my ($short, $name, $value, $text) = ($1, $2, $3, $4); print $name, $value // "", $short ? " $short" : "", $text =~ /default:?\s+([^);\s]+)/ ? " $1" : "", "\n" }'
> --size MP 24
> --channels N 3
> --type TYPE u8
> --seconds S 0.2
> --backend NAME -b all
> --json
> --device LIST -d
> --threads N -j 0
> --simd LEVEL auto
> --max-memory SIZE 4G
> --color WHEN auto
> --help -h
> --version -V
