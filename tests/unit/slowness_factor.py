#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The factor for the tests' time limits follows from what a machine was measured to give."""
import unittest

import slowness


class Slowness(unittest.TestCase):
    def test_factor(self):
        for share, emulated, factor in ((1, None, 1), (0.98, None, 1), (0.95, 3.3e6, 1), (0.5, None, 2), (1, 2e6, 1),
                                        (0.95, 0.99e6, 3), (0.1, 0.5e6, 20), (0.7, 1.4e6, 2)):
            self.assertEqual(slowness.slowness(share, emulated), factor, (share, emulated))

    def test_share_is_of_wall_time(self):
        self.assertTrue(0 < slowness.cpu_share(None) <= 1.01)


if __name__ == "__main__":
    unittest.main()
