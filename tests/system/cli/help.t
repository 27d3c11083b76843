# The help is generated from the descriptors.
$ gpufilter
> Usage: gpufilter FILTER [OPTION]... IN [OUT]
>   or:  gpufilter FILTER [OPTION]... --out-dir DIR IN...
>   or:  gpufilter COMMAND [OPTION]... [FILE]...
> Image filters with the same bits on CPU and GPU.
> 
> Filters:
>   smooth       enhance, blur and smooth an image along its rows or columns
>   normalize    divide every sample by the mean of its channel
>   axis-sum     sum every row or every column of each channel
>   hist         count samples in bins, and extract those of some bins in order
>   dot          dot product, cosine, MSE and PSNR of two images
>   compare      test whether two images are the same pixels
> 
> Commands:
>   verify       compare all backends of this machine with golden
>   bench        time filters on this machine
>   info         print format and metadata of image files
>   devices      list the processor and the CUDA devices
> 
> Reads  PNG, PGM, PPM, PAM, PFM, JPEG, BMP, TGA, PSD, GIF and HDR
> Writes PNG, PGM, PPM, PAM, PFM, JPEG, BMP, TGA, HDR and raw rows
> 
> Run 'gpufilter NAME -h' for the main options, or --help for all options.
$ gpufilter help smooth
> Usage: gpufilter smooth [OPTION]... IN OUT
>   or:  gpufilter smooth [OPTION]... --out-dir DIR IN...
> Enhance, blur and smooth an image along its rows or columns.
> 
> Three stages run over every row (--axis x) in binary32, each operation rounded:
>   enhance  P[i] = G * I[i]
>   blur     B[i] = mean of P[i-R] to P[i+R]
>   smooth   F[i] = W * (W * (B[i] + B[i-1]) + B[i+1])
> Only real samples of the row count as neighbours: nothing is padded.
> 
> The default brightens: flat areas come out G * (W + 2 W^2) = 1.452 times as
> bright, and bright areas clip. --keep-brightness undoes that.
> 
> The chain is not symmetric: F[i] weighs I[i-3] to I[i+3] by 0.055 0.109 0.2 0.2
> 0.2 0.145 0.091 (times 1.452), so each pass moves the picture by
> (1 - W) / (1 + 2 W) = 0.18 pixels to the left, with --axis y up. W = 1 does not
> move it.
> 
> Alpha is carried through untouched. Every backend gives the same bits.
> 
> Filter options:
>   -g, --gain G            enhance: factor of every sample; without it 1.1, or 1
>                           with --keep-brightness (range: 0..100)
>   -r, --radius R          blur: neighbours on each side in the mean (range:
>                           0..127; default: 2)
>   -w, --weight W          smooth: weight of the sum with each next neighbour
>                           (range: 0..100; default: 0.6)
>       --stages LIST       which stages run, comma-separated, in this order
>                           (enhance, blur, smooth; default: enhance,blur,smooth)
>   -a, --axis AXIS         along rows, down columns, or rows and then columns
>                           (x, y, xy; default: x)
>   -t, --tile N            cut rows (columns) into tiles of N samples filtered
>                           on their own; 0: no tiles (range: 0..2147483647;
>                           default: 0)
>   -k, --keep-brightness   undo the chain's gain, so that flat areas keep their
>                           value
> 
> Input and output:
>       --raw SHAPE         read headerless inputs; SHAPE:
>                           WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]; TYPE: u8,
>                           u16le, u16be, f32le or f32be; OFFSET: bytes before
>                           the first row
>       --format FORMAT     image format of the output; without it, the extension
>                           selects the format (png, pgm, ppm, pnm, pam, pfm,
>                           jpg, jpeg, bmp, tga, hdr, raw)
>   -c, --compression EFFORT
>                           PNG compression effort (fast, balanced, small, none;
>                           default: fast)
>       --strip             omit the metadata of the input from the output
>   -f, --force             overwrite existing outputs; write images to a
>                           terminal
>       --dry-run           list the outputs without writing them; report errors
>                           that would prevent writing them
>       --sync WHEN         fsync outputs before renaming them; auto: only those
>                           that replace a file (auto, always, never; default:
>                           auto)
> 
> Multiple files:
>   -O, --out-dir DIR       write the outputs to this folder; all operands are
>                           inputs; the folder is created if needed
>       --name TEMPLATE     template of output names; replaces {stem}, {ext},
>                           {name}, {index} and {index:DIGITS} (default:
>                           {stem}{ext})
>       --files-from FILE   read input names from a file, one per line; -:
>                           standard input
>   -0, --null              --files-from: names are NUL-terminated
>   -R, --recursive         process folders and their subfolders; every file with
>                           the extension of an image is an input, with --raw
>                           every .raw file
>       --shard K/N         process only part K of N; the part consists of inputs
>                           K, K+N, K+2N, ...
>       --resume            skip outputs that are newer than their input
>       --keep-going        continue with the other inputs after a failure; this
>                           is the default
>       --fail-fast         start no more inputs after a failure
> 
> Backend and threads:
>   -b, --backend NAME      backend; auto: the backend with the lowest estimated
>                           run time (auto, golden, cpu, cuda; default: auto)
>   -d, --device LIST       CUDA devices: 0 or 0,2 or all; a filter then runs on
>                           the cuda backend
>   -j, --threads N         CPU threads, 0: one per core; in a batch, images
>                           processed at once (range: 0..1024; default: 0)
>       --simd LEVEL        SIMD level of the cpu backend (auto, portable, avx2,
>                           avx512; default: auto)
>       --rows-per-strip N  rows per strip; 0: automatic, for golden the whole
>                           image (range: 0..2147483647; default: 0)
>       --verify            recompute with golden and fail if any bit differs;
>                           also read output images back before renaming them
> 
> Limits:
>       --max-memory SIZE   memory limit per image; covers strips, results,
>                           extracted samples and buffered images (default: 4G)
>       --max-pixels N      pixel limit per input (default: 8G)
>       --max-chunk SIZE    size limit per metadata chunk of an input (default:
>                           16M)
>       --max-seconds N     CPU time limit in seconds; for decoding a JPEG, BMP,
>                           TGA, PSD, GIF or HDR (range: 1..1000000; default: 60)
>       --no-sandbox        decode JPEG, BMP, TGA, PSD, GIF and HDR without a
>                           sandbox; for trusted files only
> 
> Progress and reports:
>       --json              print reports as JSON; one line per image
>   -q, --quiet             print errors only
>   -v, --verbose           print parameters, backend and time per stage
>       --progress HOW      show progress on standard error; auto: a bar on a
>                           terminal; lines: a line every 10 seconds; json: a
>                           JSON object every second (auto, lines, json, none;
>                           default: auto)
>       --no-progress       same as --progress none
>       --color WHEN        colour the text output; auto: on a terminal, unless
>                           NO_COLOR is set (auto, always, never; default: auto)
>   -h, --help              print all options; -h: print the most used options
>   -V, --version           print the version
> 
> The file name - means standard input or standard output.
> In a batch, a failed input does not stop the others; the exit status is 1.
> 
> Exit status:
>   0        success
>   1        an input, an output, memory or the system failed
>   2        invalid option or operand
>   3        the requested backend or device is not available
>   128 + n  terminated by signal n
> 
> Examples:
>   gpufilter smooth --keep-brightness in.png out.png
>   gpufilter smooth --keep-brightness --axis xy --radius 4 in.png out.png
>   gpufilter smooth --stages blur --format ppm - - <in.png >out.ppm
>   gpufilter smooth -k *.png --out-dir out --name '{stem}-smooth{ext}'
>   gpufilter smooth -k --recursive photos --out-dir out --resume
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
# The limits in docs/security.md equal the defaults.
$ sed -n 's/^| `--\(max-[a-z]*\)` | \([^ ]*\) .*/\1 \2/p' samples/../docs/security.md | while read -r name default; do gpufilter smooth --help | grep -A2 -e "--$name " | tr -s ' \n' ' ' | grep -o "^ --$name\|default: $default)" | tr -d '\n'; echo; done
>  --max-pixelsdefault: 8G)
>  --max-memorydefault: 4G)
>  --max-chunkdefault: 16M)
>  --max-secondsdefault: 60)

# The overview fits on a screen of 80 columns and 24 lines with a prompt, for six filters.
$ gpufilter | awk '/^Filters/, /^$/ {next} END {exit NR - NF > 22}'; gpufilter | awk '/^Filters/, /^$/ {next} {n++} END {exit n > 14}'; gpufilter | awk 'length > 80 {exit 1}'

# -h fits on a screen of 24 lines and 80 columns, --help has every option.
$ gpufilter smooth -h
> Usage: gpufilter smooth [OPTION]... IN OUT
>   or:  gpufilter smooth [OPTION]... --out-dir DIR IN...
> Enhance, blur and smooth an image along its rows or columns.
> 
>   -g, --gain G           enhance: factor of every sample (range: 0..100)
>   -r, --radius R         blur: neighbours on each side in the mean (default: 2)
>   -w, --weight W         smooth: weight of the sum with each next neighbour
>       --stages LIST      which stages run, comma-separated, in this order
>   -a, --axis AXIS        along rows, down columns, or rows and then columns
>   -t, --tile N           cut rows (columns) into tiles of N samples filtered...
>   -k, --keep-brightness  undo the chain's gain, so that flat areas keep...
> 
>   -f, --force            overwrite existing outputs
>   -O, --out-dir DIR      write the outputs to this folder
>   -b, --backend NAME     backend (auto, golden, cpu, cuda; default: auto)
>   -j, --threads N        CPU threads, 0: one per core (default: 0)
>       --json             print reports as JSON
>   -v, --verbose          print parameters, backend and time per stage
> 
> Run 'gpufilter smooth --help' for all options and examples.
$ for name in '' $(gpufilter help | awk '/^(Filters|Commands):/ {on = 1; next} /^$/ {on = 0} on {print $1}'); do gpufilter $name -h | awk -v name="$name" 'length($0) > 80 {print name ": " $0} END {if (NR < 10 || NR > 24) print name ": " NR " lines"}'; done
$ gpufilter smooth -h --help | cmp - <(gpufilter smooth --help); gpufilter help smooth | cmp - <(gpufilter smooth --help)
