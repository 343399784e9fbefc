"""Words by what they do in log lines: those that name a value, and those that tell nothing."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Characters of scripts that put no space between words (kana, Chinese characters).
UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

# Words whose number is a place in the job and not part of a name.
INDEXED = _words(
    """
    rank gpu cuda device shard chunk part worker step epoch layer stage expert iter iteration
    attempt replica thread block group batch bucket queue slot port lane link channel stream bank
    partition split microbatch tp pp dp ep cp task proc process loader slice segment row index idx v
    """
)

# What a name of one job's own stands behind: `user=alice`, `bucket models-7`.
IDENTITIES = _words(
    """
    user username owner account job jobname job_name jobid job_id name id host hostname node
    nodename server client peer pool volume vol bucket dataset corpus queue partition namespace ns
    pod container image device dev file filename path dir directory url uri endpoint cluster region
    zone tenant project run run_id experiment task worker actor addr address uuid session request
    req request_id key object blob tag mount share share_name reservation qos lease table topic
    branch tokenizer split shard model
    """
)

# What a setting is, and no name: `lease=true` is not `lease=false`.
STATES = _words(
    """
    true false yes no on off none null nil ok enabled disabled up down online offline lost dead alive
    failed passed success succeeded done missing invalid valid expired revoked full empty stale degraded
    healthy unhealthy ready
    """
)

# Ends of names of data files; those of sources name the software and stay.
FILE_ENDS = _words(
    """
    bin tar gz tgz zst zip parquet idx json jsonl pt pth safetensors ckpt npy npz arrow h5 hdf5 txt
    csv tsv tfrecord rec lmdb mds webdataset wds db sqlite yaml yml toml ini conf cfg log out err
    pkl pickle model vocab tok tokens dat data mp4 jpg jpeg png wav flac pb onnx gguf lock tmp
    partial manifest index
    """
)

# What tells nothing: how sentences are joined, levels, and exception classes that Python itself has.
NOISE = _words(
    """
    the and for with was has had are not from this that into will been but can cannot could its out
    error errors err fatal critical warning warn info debug exception true false none null nan
    traceback most recent call last assertionerror runtimeerror valueerror typeerror keyerror
    indexerror attributeerror oserror ioerror exceptiongroup nameerror importerror
    modulenotfounderror filenotfounderror permissionerror timeouterror connectionerror
    notimplementederror stopiteration systemexit keyboardinterrupt memoryerror overflowerror
    zerodivisionerror unicodedecodeerror brokenpipeerror connectionreseterror eoferror lookuperror
    arithmeticerror floatingpointerror recursionerror syntaxerror buffererror systemerror
    """
)

# What other languages write where English has `error`, `failed`, `warning` and the like.
_FOREIGN_NOISE = _words(
    """
    fehler warnung fehlgeschlagen abbruch schwerwiegend erreur avertissement échec échoué fatale
    fallo falló advertencia aviso crítico erro falha falhou errore avviso fallito
    ошибка ошибки критическая критический предупреждение сбой сбоя
    错误 失败 异常 警告 严重 致命 训练 进程 任务 节点
    エラー 失敗 異常 致命的 ノード
    오류 실패 경고 치명적
    """
)
NOISE |= _FOREIGN_NOISE

# Words that many lines of all sorts hold, beside noise.
EMPTY = NOISE | _words(
    """
    failed failure failures fail failing job task process rank ranks worker node host step line file
    code exit status exited got expected found invalid unexpected message reason pid time date while
    when after before please see now unknown problem issue something wrong abort aborted aborting
    terminated killed stopped
    """
)
