"""Pages that people look at: one HTML file each, which needs nothing but a browser.

::

    frame.py      the page, whose HTML, styles and script are files in ../templates
    matrix.py     cluster x component version
    changes.py    what a change does, and the change groups
    pictures.py   GPUs and how they are cut
    findings.py   what the rules have to say, and what those rules mean

The others make the sections. Text goes through `frame.text` and nothing else: what a policy holds is never a
tag. A content security policy in the page lets it load nothing and run no script but its own.
"""
