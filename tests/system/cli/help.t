# Help says what the descriptors say.
$ gpufilter
> gpufilter 0.1.0: image filters with the same bits on CPU and GPU
> Usage: gpufilter FILTER [OPTION]... IN [OUT]
>        gpufilter FILTER [OPTION]... --out-dir DIR IN...
>        gpufilter COMMAND [OPTION]... [FILE]...
>        gpufilter help FILTER
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
>   verify       compare every backend with golden, here, on this machine
>   bench        time filters on this machine
>   info         tell what image files hold
>   devices      list the processor and the CUDA devices
> 
> Reads  PNG, PGM, PPM, PAM, PFM, JPEG, BMP, TGA, PSD, GIF and HDR
> Writes PNG, PGM, PPM, PAM, PFM, JPEG, BMP, TGA, HDR and raw rows
$ gpufilter help smooth
> Usage: gpufilter smooth [OPTION]... IN OUT
>        gpufilter smooth [OPTION]... --out-dir DIR IN...
> smooth: enhance, blur and smooth an image along its rows or columns.
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
> What it computes:
>   -g, --gain G            enhance: factor of every sample; without it 1.1, or 1
>                           with --keep-brightness (0 to 100)
>   -r, --radius R          blur: neighbours on each side in the mean (0 to 127;
>                           default 2)
>   -w, --weight W          smooth: weight of the sum with each next neighbour (0
>                           to 100; default 0.6)
>       --stages LIST       which stages run, comma-separated, in this order
>                           (enhance, blur, smooth; default enhance,blur,smooth)
>   -a, --axis AXIS         along rows, down columns, or rows and then columns
>                           (x, y, xy; default x)
>   -t, --tile N            cut rows (columns) into tiles of N samples filtered
>                           on their own; 0: no tiles (0 to 2147483647; default
>                           0)
>   -k, --keep-brightness   undo the chain's gain, so that flat areas keep their
>                           value
> 
> Outputs:
>       --format FORMAT     format of the image written, instead of what its name
>                           says (png, pgm, ppm, pnm, pam, pfm, jpg, jpeg, bmp,
>                           tga, hdr, raw)
>   -c, --compression EFFORT
>                           PNG: how much time to spend on a small file (fast,
>                           balanced, small, none; default fast)
>       --strip             leave the input's metadata out of the output
>   -f, --force             replace an existing output; allow an image to a
>                           terminal
>       --dry-run           write nothing: list the outputs, or say what is in
>                           their way
>       --sync WHEN         outputs that are on the disk, safe from a power
>                           failure, before they appear: those that replace a
>                           file (auto), all, or none (auto, always, never;
>                           default auto)
> 
> Many files:
>   -O, --out-dir DIR       all operands are inputs, and their outputs go into
>                           this folder; it is made if it is not there
>       --name TEMPLATE     what outputs are called there, with {stem}, {ext},
>                           {name}, {index} or {index:DIGITS} (default
>                           {stem}{ext})
>       --files-from FILE   read more inputs' names from a file, or - for
>                           standard input, one a line
>   -0, --null              --files-from: names end with a NUL byte, not with a
>                           line
>   -R, --recursive         take the images in folders that are named, and in
>                           those below them; with --raw the .raw files there
>       --shard K/N         take the K-th of N parts of the inputs: numbers K,
>                           K+N, K+2N, ...
>       --resume            skip outputs that exist and are newer than their
>                           input
>       --keep-going        go on with the others when an input fails, as is done
>                           anyway
>       --fail-fast         begin no others once an input has failed
> 
> Who computes:
>   -b, --backend NAME      who computes: the one expected to finish first, or a
>                           named one (auto, golden, cpu, cuda; default auto)
>   -d, --device LIST       CUDA devices that share the work, and so the cuda
>                           backend: 0, 0,2 or all
>   -j, --threads N         CPU threads that compute; of many inputs as many are
>                           under way; 0: one a core (0 to 1024; default 0)
>       --simd LEVEL        vector instructions of the cpu backend (auto,
>                           portable, avx2, avx512; default auto)
>       --rows-per-strip N  rows that travel together; 0: chosen from their size
>                           (golden takes all) (0 to 2147483647; default 0)
>       --verify            let golden compute all of it, too, and fail if a bit
>                           differs; an image is also read back before it has its
>                           name
> 
> Inputs:
>       --raw SHAPE         inputs are rows without a header, of the shape
>                           WIDTHxHEIGHT[xCHANNELS]:TYPE[+OFFSET]; TYPE is u8,
>                           u16le, u16be, f32le or f32be, OFFSET the bytes before
>                           the rows
>       --max-memory SIZE   most memory that one image may take: its strips, its
>                           result, samples and images that are held (default 4G)
>       --max-pixels N      most pixels an input may have (default 8G)
>       --max-chunk SIZE    most bytes of one metadata chunk of an input (default
>                           16M)
>       --max-seconds N     most CPU time that decoding a JPEG, BMP, TGA, PSD,
>                           GIF or HDR may take (1 to 1000000; default 60)
>       --no-sandbox        decode those in this process, not in one that can do
>                           no harm: for files that you trust
> 
> Messages:
>       --json              print one line of JSON: what was done, and what was
>                           measured
>   -q, --quiet             print nothing for people but errors
>   -v, --verbose           say what was done, by which backend, and where the
>                           time went
>       --progress HOW      how far it has come, on standard error: a bar on a
>                           terminal (auto), a line now and then, a JSON object
>                           each second (docs/results.md), or nothing (auto,
>                           lines, json, none; default auto)
>       --no-progress       as --progress none
>       --color WHEN        colours: on a terminal, unless NO_COLOR is set
>                           (auto), or always, or never (auto, always, never;
>                           default auto)
>   -h, --help              print this help
>   -V, --version           print the version
> 
> A file named - is standard input or output.
> Of many inputs one that fails does not stop the others; the exit code is 1.
> Exit codes: 0 good, 1 a file failed or images differ, 2 usage (or compare could
> not compare), 3 no such backend or device, 128 + n on signal n.
> 
> Examples:
>   gpufilter smooth --keep-brightness in.png out.png
>   gpufilter smooth --keep-brightness --axis xy --radius 4 in.png out.png
>   gpufilter smooth --stages blur --format ppm - - <in.png >out.ppm
>   gpufilter smooth -k *.png --out-dir out --name '{stem}-smooth{ext}'
>   gpufilter smooth -k --recursive photos --out-dir out --resume
$ gpufilter smooth --help | cmp - <(gpufilter help smooth)
$ gpufilter --help | cmp - <(gpufilter)
$ gpufilter smooth -h --radius 3 | head -n 1
> Usage: gpufilter smooth [OPTION]... IN OUT
$ gpufilter --version | sed -E '2s/^(no CUDA|CUDA for sm [^,]+), (no )?cairo, no MPI; SIMD here: [a-z0-9]+$/built in #/'
> gpufilter 0.1.0
> built in #
$ gpufilter smooth --version | sed -E '2s/^(no CUDA|CUDA for sm [^,]+), (no )?cairo, no MPI; SIMD here: [a-z0-9]+$/built in #/'
> gpufilter 0.1.0
> built in #
$ gpufilter smooth --help | awk 'length > 80'
# docs/security.md has the limits as they are.
$ sed -n 's/^| `--\(max-[a-z]*\)` | \([^ ]*\) .*/\1 \2/p' samples/../docs/security.md | while read -r name default; do gpufilter smooth --help | grep -A2 -e "--$name " | tr -s ' \n' ' ' | grep -o "^ --$name\|default $default)" | tr -d '\n'; echo; done
>  --max-pixelsdefault 8G)
>  --max-memorydefault 4G)
>  --max-chunkdefault 16M)
>  --max-secondsdefault 60)

# What there is fits on a screen of 80 columns and 24 lines, with its prompt: six filters and what stands around them.
$ gpufilter | awk '/^Filters/, /^$/ {next} END {exit NR - NF > 22}'; gpufilter | awk '/^Filters/, /^$/ {next} {n++} END {exit n > 14}'; gpufilter | awk 'length > 80 {exit 1}'
