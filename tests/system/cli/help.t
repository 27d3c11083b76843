# The structure of the help: filters, commands and formats; of a filter the sections, then options with letters and defaults.
$ gpufilter --help | sed -nE '/^(Filters|Commands)/,/^$/s/^  ([a-z-]+) .*/\1/p; /^(Usage|Reads|Writes)/p'
> Usage: gpufilter FILTER [OPTION]... IN [OUT]
> smooth
> gaussian
> box
> sharpen
> convolve
> median
> percentile
> erode
> dilate
> resize
> normalize
> axis-sum
> hist
> dot
> compare
> run
> verify
> bench
> info
> devices
> Reads and writes PNG, PGM, PPM, PAM, PFM, NPY, farbfeld, JPEG, TIFF, BMP, TGA
$ gpufilter help smooth | grep -E '^[A-Z][A-Za-z ]*:$|^Usage|^  gpufilter'
> Usage: gpufilter smooth [OPTION]... IN OUT
> Filter options:
> Input and output:
> Multiple files:
> Backend and threads:
> Limits:
> Progress and reports:
> Exit status:
> Examples:
>   gpufilter smooth --keep-brightness in.png out.png
>   gpufilter smooth --keep-brightness --axis xy --radius 4 in.png out.png
>   gpufilter smooth --stages blur --format ppm - - <in.png >out.ppm
>   gpufilter smooth -k *.png --out-dir out --name '{stem}-smooth{ext}'
>   gpufilter smooth -k --recursive photos --out-dir out --resume
$ gpufilter help smooth | perl -0ne 'while (/^ +(?:(-.), )? *(--[a-z-]+)( [A-Z]+)?(.*?)(?=^ +(?:-., )? *--|^\S|\z)/gms) { my ($short, $name, $value, $text) = ($1, $2, $3, $4); print $name, $value // "", $short ? " $short" : "", $text =~ /default:?\s+([^);\s]+)/ ? " $1" : "", "\n" }'
> --gain G -g 1.1,
> --radius R -r 2
> --weight W -w 0.6
> --stages LIST enhance,blur,smooth
> --axis AXIS -a x
> --tile N -t 0
> --keep-brightness -k
> --raw SHAPE
> --autorotate
> --crop X
> --page N
> --alpha CHANNEL file
> --nodata HOW file
> --as TYPE input
> --channels LIST
> --strict
> --format FORMAT
> --compression EFFORT -c fast
> --quality N -Q 95
> --tiff-compression NAME deflate
> --strip
> --depth DEPTH input
> --linear
> --premultiply HOW auto
> --force -f
> --dry-run
> --sync WHEN auto
> --out-dir DIR -O
> --name TEMPLATE {stem}{ext}
> --files-from FILE
> --null -0
> --recursive -R
> --shard K
> --resume
> --keep-going
> --fail-fast
> --backend NAME -b auto
> --device LIST -d
> --threads N -j 0
> --simd LEVEL auto
> --rows-per-strip N 0
> --verify
> --max-memory SIZE 4G
> --max-pixels N 32G
> --max-chunk SIZE 16M
> --max-seconds N 60
> --no-sandbox
> --json
> --quiet -q
> --verbose -v
> --progress HOW auto
> --no-progress
> --color WHEN auto
> --help -h
> --version -V
$ gpufilter smooth --help | cmp - <(gpufilter help smooth)
$ gpufilter help | cmp - <(gpufilter); gpufilter -h | cmp - <(gpufilter)
$ gpufilter smooth -h --radius 3 | head -n 1
> Usage: gpufilter smooth [OPTION]... IN OUT
$ gpufilter --version | sed -E '2s/^(no CUDA|CUDA for sm [^,]+), (no )?cairo, no MPI; SIMD: [a-z0-9]+$/built in #/'
> gpufilter 0.1.0
> built in #
> Copyright (c) 2026 The gpufilter authors; MIT License
$ gpufilter smooth --version | sed -E '2s/^(no CUDA|CUDA for sm [^,]+), (no )?cairo, no MPI; SIMD: [a-z0-9]+$/built in #/'
> gpufilter 0.1.0
> built in #
> Copyright (c) 2026 The gpufilter authors; MIT License
$ gpufilter smooth --help | awk 'length > 80'
# docs/security.md has the limits as they are.
$ sed -n 's/^| `--\(max-[a-z]*\)` | \([^ ]*\) .*/\1 \2/p' samples/../docs/security.md | while read -r name default; do gpufilter smooth --help | grep -A2 -e "--$name " | tr -s ' \n' ' ' | grep -o "^ --$name\|default: $default)" | tr -d '\n'; echo; done
>  --max-pixelsdefault: 32G)
>  --max-memorydefault: 4G)
>  --max-chunkdefault: 16M)
>  --max-secondsdefault: 60)

# What there is fits on a screen of 80 columns and 24 lines, with its prompt: six filters and what stands around them.
$ gpufilter | awk '/^Filters/, /^$/ {next} END {exit NR - NF > 22}'; gpufilter | awk '/^Filters/, /^$/ {next} {n++} END {exit n > 14}'; gpufilter | awk 'length > 80 {exit 1}'

# -h fits on a screen of 24 lines and 80 columns, --help has every option.
$ gpufilter smooth -h
> Usage: gpufilter smooth [OPTION]... IN OUT
>   or:  gpufilter smooth [OPTION]... --out-dir DIR IN...
> Enhance, blur and smooth an image along its rows or columns.
> 
>   -g, --gain G           enhance: gain of every sample (range: 0..100)
>   -r, --radius R         blur: neighbours averaged on each side (default: 2)
>   -w, --weight W         smooth: weight applied after adding each neighbour
>       --stages LIST      stages to run, comma-separated, in this order
>   -a, --axis AXIS        axis to filter along (x, y, xy; default: x)
>   -t, --tile N           filter tiles of N samples separately (default: 0)
>   -k, --keep-brightness  undo the gain
> 
>   -f, --force            overwrite existing outputs
>   -O, --out-dir DIR      write the outputs to this directory
>   -b, --backend NAME     backend (auto, golden, cpu, cuda; default: auto)
>   -j, --threads N        CPU threads, 0: one per core (default: 0)
>       --json             print reports as JSON
>   -v, --verbose          print parameters, backend and time per stage
> 
> Run 'gpufilter smooth --help' for all options and examples.
$ for name in '' $(gpufilter help | awk '/^(Filters|Commands):/ {on = 1; next} /^$/ {on = 0} on {print $1}'); do gpufilter $name -h | awk -v name="$name" 'length($0) > 80 {print name ": " $0} END {if (NR < 10 || NR > 24) print name ": " NR " lines"}'; done
> : 30 lines
$ gpufilter smooth -h --help | cmp - <(gpufilter smooth --help); gpufilter help smooth | cmp - <(gpufilter smooth --help)
