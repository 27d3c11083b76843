/* Smooths one image file into another, along its rows and its
 * columns. */
#include <gpufilter.h>
#include <stdio.h>

int main(int argc, char **argv) {
    const gf_filter *filter = gf_filter_find("smooth");
    const gf_filter_info *info = gf_filter_describe(filter);
    gf_settings *settings =
        gf_settings_new(info->params, info->param_count);
    gf_engine *engine = NULL;
    gf_error error = {0};

    if (argc != 3 || !settings)
        return GF_USAGE;
    const char *in[] = {argv[1]};
    if (gf_settings_set(settings, "axis", "xy", &error) ||
        gf_engine_open(NULL, &engine, &error) ||
        gf_run_file(engine, filter, settings, in, argv[2], NULL,
                    NULL, NULL, &error))
        fprintf(stderr, "%s\n", error.message);
    gf_engine_close(engine);
    gf_settings_free(settings);
    return (int)error.status;
}
