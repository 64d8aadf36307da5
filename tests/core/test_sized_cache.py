from proctor.core.sized_cache import sized_cache


def cached_zeros(max_bytes):
    made = []

    @sized_cache(max_bytes, len)
    def zeros(size):
        made.append(size)
        return bytes(size)

    return zeros, made


def test_results_are_made_once_while_there_is_room_for_them():
    zeros, made = cached_zeros(10)
    for size in (5, 3, 2, 5, 3, 2):
        assert zeros(size) == bytes(size)
    assert made == [5, 3, 2]


def test_the_longest_unused_result_goes_first():
    zeros, made = cached_zeros(10)
    for size in (5, 4, 5, 3):  # 3 pushes 4 out, since 5 was used after it
        zeros(size)
    for size in (5, 3):
        zeros(size)
    assert made == [5, 4, 3]
    zeros(4)
    assert made == [5, 4, 3, 4]


def test_a_result_that_is_too_large_stays_alone():
    zeros, made = cached_zeros(10)
    for size in (2, 50, 50, 2, 2):
        zeros(size)
    assert made == [2, 50, 2]
