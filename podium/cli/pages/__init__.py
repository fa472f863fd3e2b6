"""The pages that `--html FILE` writes: one file each, which loads nothing and can be sent to somebody.

Owns what a page shows of a command's results (a module for each command: pure), and how it is written (`document`). The
drawing is done by `page.js` in the browser, from data in the page.
"""
