"""The live page, /ui: the queue, the decisions as they happen, and the nodes by utilisation, in a browser.

Owns the page's files, what is read off the scheduler for them, and the stream of changes. Never hears of an attempt as
it happens: without a reader nothing is read, and a scheduler without the page has no part of this package.
"""

from podium.daemon.live_page.contents import Contents, DecisionRows, QueueRows, node_rows
from podium.daemon.live_page.node_devices import NodeDevices
from podium.daemon.live_page.page import LivePage

__all__ = ["Contents", "DecisionRows", "LivePage", "NodeDevices", "QueueRows", "node_rows"]
