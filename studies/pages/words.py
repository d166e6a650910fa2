"""What is known about a study before it is run: its question, its paper, and how the paper's
setting differs.
"""

from dataclasses import dataclass

DING = "Ding, Liu, Xiong & Shi 2020, Revisiting the Evaluation of Uncertainty Estimation"
VEMURI = "Vemuri 2020, Scoring Confidence in Neural Networks"
FINLAY = (
    "Finlay & Oberman, Empirical Uncertainty Estimates for Classification by Deep Neural Networks"
)
LAVES = "Laves, Ihler, Kortmann & Ortmaier 2019, Well-calibrated Model Uncertainty with Temperature Scaling"

DATA = {
    "digits": "scikit-learn's digits",
    "digit_masks": "masks drawn from digits",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "membrane": "ISBI-2012 membranes",
    "nuclei": "nuclei of the 2018 Data Science Bowl",
}


@dataclass(frozen=True)
class Words:
    """`paper_setting` is what the authors did, as far as they say; `values` how their numbers are
    given here.
    """

    question: str
    source: str
    paper_setting: str
    values: str
    needs_provided: bool = False


WORDS = {
    "complexity": Words(
        "What becomes of ranking and of calibration as networks grow?",
        f"{DING}, section 5.2, figures 4 and 5",
        "DenseNet with growth 12 and depth 10 to 100, WideResNet-16 and -28 of several widths, CIFAR-10 and CIFAR-100, "
        "trained to the end; softmax probability for ranking, temperature scaling for calibration.",
        "The paper shows figures 4 and 5 as curves without numbers, so that only its words and the numbers of bins "
        "(12.6 and 21.2) can stand beside ours.",
        needs_provided=True,
    ),
    "segmentation": Words(
        "What becomes of ranking by 1 - Dice and of pixel-wise calibration as U-Nets widen?",
        f"{DING}, section 5.2, figure 7",
        "U-Nets of several widths on the Multi-Modality Whole Heart Segmentation data, with much easy background.",
        "Figure 7 has no numbers in print; its words stand beside ours. The images here are ISBI-2012 membranes and "
        "the loss was cross entropy, not Dice; `nuclei` has background and Dice as in the paper. Every picture says "
        "whether it shows the network as trained or after temperature scaling.",
    ),
    "regularisation": Words(
        "Is the regularisation that gives the best error also the one that gives the best confidence?",
        f"{VEMURI}, figures 3.1, 3.2, 5.1 and 5.2",
        "ResNet-44 on CIFAR-10, 300 epochs, one regulariser at a time; a network that fits its training images almost "
        "perfectly. What the paper says of such a network is judged on those of ours that were trained for 100 epochs.",
        "The values of figure 5.2 stand in the table. Label smoothing 0.9 in the paper is the weight of the true "
        "label, here 0.1; figure 5.1 has no numbers in print.",
    ),
    "calibration": Words(
        "Which correction or score helps an over-confident network, and can it be chosen beforehand?",
        f"{VEMURI}, figures 6.1 to 6.3",
        "ResNet-44 on CIFAR-10 without augmentation, 300 epochs, with a test ECE of 16.8 %.",
        "The values of figures 6.1 and 6.3 stand in the tables. The paper's AAC of histogram binning is worse than a "
        "constant score could have at that accuracy.",
        needs_provided=True,
    ),
    "odds": Words(
        "What is each measure of uncertainty worth to a bettor?",
        f"{FINLAY}, tables 1 to 5",
        "Networks with about 95 % top-1 accuracy on CIFAR-10 and 92 % top-5 accuracy on CIFAR-100; ensemble and "
        "dropout at three rates, switched on when one network is asked that was trained without it. Judged on a "
        "published ResNet-20 treated so; networks trained here with dropout, one for each rate, are listed.",
        "The values of tables 1 to 5 stand in the tables. Bins without errors make the ratio infinite; the paper does "
        "not say how it treated them, its code pools them. Pooled and smoothed values are both shown.",
        needs_provided=True,
    ),
    "mc_temperature": Words(
        "Does a temperature inside MC dropout repair the uncertainty, and what does a confidence penalty add?",
        f"{LAVES}, table 1 and figures 1 to 5",
        "ResNet-18 on CIFAR-10, ResNet-101 and DenseNet-169 on CIFAR-100, DenseNet-121 with the penalty; AdamW, "
        "dropout 0.5 before the last layer, 25 passes. Their ECE as trained is 9 to 31 %; claims are judged on those "
        "of our networks whose confidence is five points or more above their accuracy on validation images.",
        "The values of table 1 stand in the table. The paper's equation minimises the NLL of the averaged "
        "probabilities, its released code the mean NLL of the passes; both temperatures are shown. "
        "CIFAR-100 images could not be had and nobody published dropout passes, so that 100 classes stay open.",
    ),
    "densenet_m": Words(
        "Do AUROC and AUPR of finding errors reward a network that was made worse on purpose?",
        f"{DING}, section 4.1, table 1 and figure 1",
        "DenseNet-100 on CIFAR-10 with an accuracy of 95.30 %; its m least confident right answers count as wrong.",
        "The values of table 1 stand in the table. Its AUROC for m > 0 is a little above what the construction allows.",
        needs_provided=True,
    ),
    "nuclei": Words(
        "The same as `segmentation` where background dominates and the loss is Dice: what becomes of it?",
        f"{DING}, section 5.2, figure 7",
        "U-Nets of several widths, trained for Dice, on the Multi-Modality Whole Heart Segmentation data.",
        "Figure 7 has no numbers in print; its words stand beside ours. Near duplicates of one slide can lie in "
        "training and test, for the source does not say which images belong together.",
    ),
    "selective": Words(
        "Does training for AURC give a better AURC?",
        f"{DING}, section 4.1 (iv)",
        "None: the paper names AURC as an objective and does not try it.",
        "The loss is `howsure.torch.selective_loss`, added to cross entropy: from the first epoch on, which costs "
        "accuracy, or in the second half of the training, where cross entropy has done its part.",
    ),
    "shift": Words(
        "What becomes of a threshold when the images change after it was set?",
        f"{VEMURI}, chapter 7",
        "None: the paper assumes one distribution and leaves shifts to further work.",
        "Each change has five strengths. The same files serve the examples of label-free monitoring.",
    ),
    "promise": Words(
        "A threshold is set on validation images: does its promise hold on the test images?",
        f"{VEMURI}, chapters 4 and 7",
        "None: the paper says that the accuracy at a threshold need not carry over and leaves it to further work.",
        "The promise is half the error of the validation images. `hs.policies.threshold_for_accuracy`, "
        "`expected_on_new_data` and `guaranteed_threshold` make it in three ways.",
        needs_provided=True,
    ),
    "precision": Words(
        "Some networks were trained in mixed precision, in half the time: does that change the numbers?",
        "a question of our own",
        "None asks this.",
        "The same seed gives the same first weights and the same batches. Trained in mixed precision: the three "
        "largest networks of `complexity`, trainings of 60 epochs on CIFAR-10 and of 100 epochs, the second ResNet-44 "
        "of `calibration`, label smoothing and the ensemble from the third seed on, and dropout in every block. "
        "Predictions are always computed in float32.",
    ),
}

# Claims whose criterion was set or changed when the numbers were known, by how their text begins, and
# what it was before.
AFTERWARDS = {
    "The confidence penalty lowers the ECE": (
        "At first a fall by a point or more was asked, which could not be decided. The paper says that it reduces "
        "miscalibration and names no margin, and its other claims of that kind had none here."
    ),
    "After scaling, MC dropout has a lower ECE": (
        "At first half a point or more, which could not be decided. The paper prints 45 to 66 %, a share."
    ),
    "The ensemble variance is worth more": (
        "At first by the authors' rule for error-free bins alone, which cannot decide it. Smoothed, and without such "
        "bins, it agrees."
    ),
    "The best dropout variance": (
        "The same: by the authors' rule alone it cannot be decided, by the two others it does not agree."
    ),
    "The smallest dropout rate": (
        "The same: by the authors' rule alone it cannot be decided on all 10,000 images (on 3,500 it agreed), by the two "
        "others it agrees."
    ),
    "Boundary distance on the softmax ranks almost": (
        "At first within a twentieth on both sides, which the published network cannot decide because its distance may "
        "be better by more than that. To be better is now as good."
    ),
    "MCE is higher than AMCE": (
        "Judged on our networks, whose families are the paper's; by the four published ResNets it cannot be decided."
    ),
    "The network is over-confident on its training": (
        "The published networks, which know these images by heart and are under-confident on them, would have said that "
        "it does not agree; they are listed and do not vote."
    ),
    "Histogram binning does not lower": (
        "At first fitted on held-out images, where it does not agree; the paper's seem to have been learnt."
    ),
    "Histogram binning ranks far worse": "The same.",
    "Networks can overfit the NLL": (
        "At first a majority of the courses had to show it. The paper says that networks can, so that one is enough."
    ),
    "AUPR of finding errors falls": (
        "Judged on our networks, of many sizes; by the published ones, which span a factor of three, it cannot be decided."
    ),
}

NO_IMAGES = "The images could not be had, and nobody published passes or ensembles of them."
# What the papers say and nothing here can decide: paper, where, claim, why.
NOT_TRIED = (
    ("Finlay & Oberman", "section 7.1, table 1",
     "On ImageNet the scores of one pass are worth more than dropout and ensemble variance", NO_IMAGES),
    ("Finlay & Oberman", "table 1", "On CIFAR-100 the implied top-5 loss is worth more than dropout and ensemble",
     NO_IMAGES),
    ("Laves", "table 1", "On CIFAR-100 scaling lowers ECE and UCE of MC dropout to a tenth", NO_IMAGES),
    ("Ding 2020", "figure 5c", "On CIFAR-100 MCE is close to AMCE for WideResNets and far above it for DenseNets",
     "The images could not be had; published are one DenseNet and no WideResNet of 100 classes."),
    ("Ding 2020", "figure 7", "The same of U-Nets on whole hearts",
     "The data need a registration; judged on membranes and nuclei instead."),
    ("Vemuri", "chapters 3 to 6", "The numbers of ResNet-44 after 300 epochs",
     "Too long for one core; judged on smaller and shorter trainings and on a published ResNet-44."),
)  # fmt: skip
