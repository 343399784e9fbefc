"""What shells and the C library say in other languages, and other last words of a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scenes import bank_read_once, judged, steps, traceback


@pytest.fixture(scope="module", autouse=True)
def _bank_is_read_once() -> Iterator[None]:
    with bank_read_once():
        yield


FAILED = traceback(
    "subprocess.CalledProcessError: Command '['sh', 'copy.sh']' returned non-zero exit status 1."
)


@pytest.mark.parametrize(
    ("end", "kind"),
    [
        ("cp: échec d'écriture de '/nas/ck/7.pt': Aucun espace disponible sur le périphérique\n" + FAILED,
         "host.disk_full"),
        ("tar: 7.tar: Kann nicht schreiben: Auf dem Gerät ist kein Speicherplatz mehr verfügbar\n" + FAILED,
         "host.disk_full"),
        ("cp: 写入'/nas/ck/7.pt' 时出错: 设备上没有空间\n" + FAILED, "host.disk_full"),
        ("./fit.sh: строка 4: 5117 Ошибка сегментирования  (стек памяти сброшен на диск) python fit.py\n",
         "process.native_crash"),
        ("./fit.sh: Zeile 4:  5117 Speicherzugriffsfehler  (Speicherabzug geschrieben) python fit.py\n",
         "process.native_crash"),
        ("./fit.sh: línea 4:  5117 Violación de segmento  (`core' generado) python fit.py\n",
         "process.native_crash"),
        ("./fit.sh: ligne 4 :  5117 Processus arrêté      python fit.py\n", "process.killed"),
        ("./fit.sh: Zeile 4:  5117 Aborted      (Speicherabzug geschrieben) python fit.py\n",
         "process.native_crash"),
        ("dd: erreur d'écriture de '/home/u/7.pt': Débordement du quota d'espace disque\n" + FAILED,
         "host.disk_full"),
        ("cp: Fehler beim Lesen von '/nas/7.tar': Eingabe-/Ausgabefehler\n" + FAILED, "storage.filesystem"),
        ("F0131 08:00:40.294567 4711 env.cc:93] Check failed: ret == 0 (11 vs. 0)Thread tf_Compute creation "
         "via pthread_create() failed.\n./fit.sh: line 4: 5117 Aborted   (core dumped) python fit.py\n",
         "host.resource_limit"),
        ("nbclient.exceptions.CellTimeoutError: A cell timed out while it was being executed, after 3600 "
         "seconds.\nThe message was: Cell execution timed out.\n", "scheduler.time_limit"),
        ("ERROR sandbox: nbclient.exceptions.CellTimeoutError: A cell timed out while it was being executed, "
         "after 30 seconds.\n" + steps(20, first=91, at=180), "none.running"),
        ("ERROR: Unexpected BUS error encountered in DataLoader worker. This might be caused by insufficient "
         "shared memory (shm), please check whether use_shared_memory is set\n"
         + traceback("RuntimeError: DataLoader 1 workers exit unexpectedly, pids: 77"), "host.shared_memory"),
        ("Epoch 9: early stopping\nRestoring model weights from the end of the best epoch: 4.\n",
         "none.completed"),
        ("Ошибка сегментирования маски на кадре 7, пропущен\n" + steps(20, first=91, at=180), "none.running"),
    ],
)  # fmt: skip
def test_the_last_words_decide(tmp_path: Path, end: str, kind: str) -> None:
    assert judged(tmp_path, {"train.log": steps(90) + end}).verdict.failure_type == kind
