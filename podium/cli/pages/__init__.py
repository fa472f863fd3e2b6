"""The pages that `--html FILE` writes: one file each, which loads nothing and can be sent to others.

Owns the content of each command's page (a pure module per command), and the writing of the file (`document`). `page.js`
draws the page in the browser, from data in the file.
"""
