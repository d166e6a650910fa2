"""The sets of real predictions in the shared folder."""

SETS = [
    "ak_resnet20_c10",
    "ak_resnet32_c10",
    "cleanlab_imdb",
    "cleanlab_mnist",
    "eurosat_rgb",
    "f538_mlb",
    "f538_nfl",
    "f538_worldcup_ingame",
    "hollance_snacks",
    "in1k_timm_efficientnet_b3a",
    "in1k_tv_resnext101_32x8d",
    "llm_mmlu_gpt_35_turbo",
    "mc_fashion_cnn",
    "netcal_densenet_bc_100_c100",
    "netcal_wideresnet_16_4_c10",
    "nn_resnet110_c10",
    "nn_resnet110_c100_top",
    "seg_unet_membrane",
]
