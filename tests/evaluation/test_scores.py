import numpy as np
from sklearn.metrics import confusion_matrix, f1_score, jaccard_score, precision_score, recall_score

from climseg.evaluation.scores import score_table, scores_from_confusion


def test_scores_equal_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 5000, p=[0.9, 0.03, 0.07])
    guess = np.where(rng.random(5000) < 0.8, truth, rng.choice(3, 5000))
    scores = scores_from_confusion(confusion_matrix(truth, guess))
    np.testing.assert_allclose(scores.iou, jaccard_score(truth, guess, average=None))
    np.testing.assert_allclose(scores.precision, precision_score(truth, guess, average=None))
    np.testing.assert_allclose(scores.recall, recall_score(truth, guess, average=None))
    np.testing.assert_allclose(scores.f1, f1_score(truth, guess, average=None))
    np.testing.assert_allclose(scores.mean_iou, jaccard_score(truth, guess, average="macro"))


def test_hand_counted_matrix() -> None:
    scores = scores_from_confusion(np.array([[6, 1, 1], [0, 2, 0], [2, 0, 4]]))
    np.testing.assert_allclose(scores.iou, [6 / 10, 2 / 3, 4 / 7])


def test_a_class_absent_from_both_sides_is_left_out_of_the_mean() -> None:
    table = score_table(np.array([[8, 0, 0], [0, 0, 0], [1, 0, 1]]))
    assert table["classes"]["tropical_cyclone"]["iou"] is None
    assert table["mean_iou"] == (8 / 9 + 1 / 2) / 2


def test_a_class_that_is_only_predicted_scores_zero() -> None:
    table = score_table(np.array([[8, 2, 0], [0, 0, 0], [0, 0, 1]]))
    assert table["classes"]["tropical_cyclone"]["iou"] == 0.0
    assert table["classes"]["tropical_cyclone"]["recall"] is None
