"""The messages between the server and the side panel, over one WebSocket.

The TypeScript types are generated from these messages, by
`python -m dm_jupyter.server.protocol.typescript`.

Messages of a run carry `run_id` and `seq`, which counts from 1 within the run. The run's journal
keeps them, and a tab that missed some gets them again: the panel builds its view of a run from
them. `seq` 0 marks an ephemeral message, such as a piece of text or a meter, which nobody keeps.
"""

from __future__ import annotations

from dm_jupyter.server.protocol.ephemeral import (
    Attached,
    DataCandidate,
    EphemeralMessage,
    FilesWanted,
    FileWritten,
    KernelEnded,
    KernelMeter,
    Phase,
    Refused,
    ServerMessage,
    TextDelta,
    WantedFile,
)
from dm_jupyter.server.protocol.panel import (
    MOST_TRIES,
    Ack,
    Approval,
    Ask,
    Attach,
    ClientMessage,
    Decide,
    DecideFiles,
    Decision,
    Detach,
    KernelChoice,
    OwnCell,
    ReadAhead,
    Rebuild,
    Renamed,
    Stop,
    TakeOver,
    Tells,
    Undo,
)
from dm_jupyter.server.protocol.run import (
    CellClosed,
    CellDecided,
    CellOpened,
    ContextTold,
    FilesDecided,
    FilesWait,
    Operated,
    RunClosed,
    RunMessage,
    RunOpened,
    RunUndone,
    StepClosed,
    StepOpened,
)

__all__ = [
    "MOST_TRIES",
    "Ack",
    "Approval",
    "Ask",
    "Attach",
    "Attached",
    "CellClosed",
    "CellDecided",
    "CellOpened",
    "ClientMessage",
    "ContextTold",
    "DataCandidate",
    "Decide",
    "DecideFiles",
    "Decision",
    "Detach",
    "EphemeralMessage",
    "FileWritten",
    "FilesDecided",
    "FilesWait",
    "FilesWanted",
    "KernelChoice",
    "KernelEnded",
    "KernelMeter",
    "Operated",
    "OwnCell",
    "Phase",
    "ReadAhead",
    "Rebuild",
    "Refused",
    "Renamed",
    "RunClosed",
    "RunMessage",
    "RunOpened",
    "RunUndone",
    "ServerMessage",
    "StepClosed",
    "StepOpened",
    "Stop",
    "TakeOver",
    "Tells",
    "TextDelta",
    "Undo",
    "WantedFile",
]
