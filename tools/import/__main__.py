# SPDX-License-Identifier: GPL-2.0
"""
twheel jobs import: a tab, made of the files of other schedulers. It is printed, and nothing is
written. twheel runs this folder, with its options and files, and its own path in TWHEEL.

For each file is said what it was taken for. What can't be said in a tab is a comment there, and
is named, and so is what means something else.
"""
import argparse
import os
import re
import sys

import crontab
import elastic
import quartz
import timer
import yaml_files
from tab import Tab, has_control, printable

FILE_MOST = 16 << 20


def read_xml(tab, data):
    try:
        root = quartz.parse(data)
    except ValueError as error:
        tab.leave_out(tab.path, str(error))
        return
    if quartz.local(root.tag) == 'job-scheduling-data':
        quartz.read(tab, root)
    elif quartz.local(root.tag) == 'beans':
        elastic.read_beans(tab, root)
    else:
        tab.leave_out(tab.path, "this XML is not known: Quartz' has job-scheduling-data in it, and Spring's "
                      'has beans')


# Their readers, which get the tab and the file's bytes
KINDS = {'.xml': read_xml, '.yaml': yaml_files.read, '.yml': yaml_files.read,
         '.timer': timer.read, '.properties': elastic.read_properties}


def kind_of(path):
    return next((read for end, read in KINDS.items() if path.endswith(end)), None)


def bytes_of(path):
    if path == '-':
        return sys.stdin.buffer.read(FILE_MOST + 1)
    with open(path, 'rb') as file:
        return file.read(FILE_MOST + 1)


def import_file(tab, path, options):
    data = bytes_of(path)
    tab.begin_file(path)
    if len(data) > FILE_MOST:
        tab.leave_out(path, 'it is longer than 16 MiB')
    elif kind_of(path):
        kind_of(path)(tab, data)
    else:
        crontab.read(tab, data, options)


def import_folder(tab, path, options):
    taken = 0
    for name in sorted(os.listdir(path), key=os.fsencode):
        file = path + '/' + name
        if name[0] == '.':
            continue
        # Cron takes such files of a folder, and no others.
        if not has_control(name) and (kind_of(name) or re.fullmatch('[a-zA-Z0-9_-]+', name)):
            import_file(tab, file, options)
            taken += 1
        else:
            tab.at(printable(file), 0)
            tab.tell('cron takes no file of this name out of a folder, and it is left out')
    if not taken:
        tab.at(path, 0)
        tab.name('there is no crontab in this folder')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--user', dest='users', action='store_const', const=False)
    parser.add_argument('--system', dest='users', action='store_const', const=True)
    parser.add_argument('--seconds', action='store_true')
    parser.add_argument('--debian', action='store_true')
    parser.add_argument('--cronie', action='store_true')
    parser.add_argument('files', nargs='+')
    options = parser.parse_args()
    tab = Tab()
    # Cron makes up for nothing, nor does a timer that is not Persistent.
    tab.put('MISFIRE=skip')
    for number, path in enumerate(options.files, 1):
        if has_control(path):
            return tab.fail('file %d has a control character in its name: rename it' % number)
        try:
            is_folder = path != '-' and os.path.isdir(path)
            (import_folder if is_folder else import_file)(tab, path, options)
        except OSError as error:
            return tab.fail('%s: %s' % (path, error.strerror))
    tab.at(tab.path, 0)
    crontab.tell_workers(tab)
    return tab.finish()


sys.exit(main())
