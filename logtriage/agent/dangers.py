"""Advice that must not be repeated: what fetches or loads code, destroys, or takes a protection away.

Advice is not in the logs, so it cannot be checked against them, and a model may have it from a log that
somebody else wrote. What is dropped here may be right now and then; whoever needs it knows it anyway.
"""

from __future__ import annotations

import re
import unicodedata

from logtriage.redaction.values import in_latin_letters

_ELSEWHERE = (
    r"\b(?:https?|ftp|javascript|file):|hxxp|www\.|\]\(|<(?:a|img|script|iframe)\b",
    r"\b(?!(?:nvidia|amd)\.com/gpu)[\w-]{2,}(?:\.[\w-]{2,})*\.[a-z]{2,10}/\S",
)
_COMMANDS = (
    r"\b(?:curl|wget|aria2c|ncat|netcat|telnet|scp|sftp|sudo|doas|base64|chmod|chown|mkfs\S*|shred|wipefs|"
    r"fdisk|parted|crontab|nohup|iptables|nftables|setenforce|userdel|killall|pkill|rmmod|insmod|modprobe|"
    r"mkswap|swapoff|blkdiscard|dmsetup|lvremove|vgremove|pvremove|unlink|rclone|powershell|iex|certutil)\b",
    r"\beval\s*[\"'$(`]|\bexec\s*[(\"'$]|\brm\s+-|\brm\s+\S*[/*~]|\bdd\s+(?:if|of)=|\bxargs\b.{0,20}\brm\b",
    r"\bfind\b.{0,60}-(?:delete|exec)\b|>\s*/(?:dev|proc|sys|etc|boot|usr|bin|lib|root)\b|:\(\)|\bkill\s+-9\s+-1",
    r"\|\s*[\w/]*(?:sh|python\d?|perl|ruby|node)\b|\b(?:ba|z|da)?sh\s+-[ci]\b|\bpython\d?\s+-c\b|\$\(|<\(",
    r"\b(?:pip3?|pipx|uv|conda|mamba|npm|npx|yarn|apt|apt-get|yum|dnf|brew|gem|cargo|snap|zypper)\s+(?:-\S+\s+)*"
    r"(?:pip\s+)?(?:install|add|remove|purge)\b|\bgit\s+(?:clone|pull|reset|push|clean|checkout)\b",
    r"\b(?:docker|podman|singularity|apptainer)\s+(?:pull|run|exec|rmi?|load|system|volume|build)\b",
    r"\bkubectl\s+(?:delete|apply|exec|create|replace|drain|patch|edit)\b|\bhelm\s+(?:install|delete|uninstall)\b",
    r"\bscancel\s+(?:-u|--user|-A|--account|-p|--partition)|\bscontrol\s+delete\b|\btruncate\s+-s",
    r"\b(?:zpool|zfs|ceph|mdadm|aws\s+s3|gsutil|s3cmd|hdfs\s+dfs|hadoop\s+fs|az\s+storage|lfs|lctl)\b.{0,30}"
    r"(?:\bdestroy|\bpurge|\bdelete|\bdel\b|-?\brmr?\b|\brb\b|zero|\babort_recov)",
    r"\bnvidia-smi\b.{0,30}(?:-e\s*0|--ecc-config[= ]0)|--privileged|--no-verify|--no-check|--insecure|"
    r"--force\b|--no-preserve-root|\bsource\s+[/~.]",
    r"\b(?:mv|cp)\s+.{0,60}\s/(?:dev/null|etc|usr|bin|lib)\b|\btee\s+/(?:etc|proc|sys|dev)\b",
    r"\b(?:drop|truncate)\s+(?:table|database|schema)\b",
)
_LOADS_CODE = (
    r"\bLD_(?:PRELOAD|AUDIT)\b|\bDYLD_\w+|\bPYTHON(?:STARTUP|INSPECT|HOME)\b|\bBASH_ENV\b|\bPROMPT_COMMAND\b",
    r"\bweights_only\s*[=:]\s*false|\btrust_remote_code\b|\ballow_pickle\s*[=:]\s*true|\b(?:c?pickle|dill)\.loads?\b",
    r"\bos\.(?:system|remove|unlink|popen)\b|\bsubprocess\.|\b__import__\b|\bimportlib\b|\bctypes\b|\bdlopen\b|"
    r"\bshutil\.rmtree\b|\b(?:download|fetch|execute|install|load)\b.{0,40}\b(?:script|binary|executable|"
    r"installer|payload|shared (?:object|library)|kernel module)\b",
)
_WHAT = (
    r"disks?|drives?|volumes?|partitions?|file ?systems?|mounts?|buckets?|databases?|director(?:y|ies)|"
    r"folders?|home|scratch|backups?|snapshots?|storage|raid|array|ssds?|nvme|data ?sets?|everything|all|"
    r"every|entire|whole"
)
_DESTROYS = (
    rf"\b(?:re-?format|format|wip|eras|shredd?|nuk|destroy|zero(?:ing)? out)(?:e|es|ing|s|ted)?\b.{{0,24}}"
    rf"(?:\b(?:{_WHAT}|nodes?|machines?|cluster)\b|/\w)",
    rf"\b(?:overwrit|purg|delet|remov|re-?initiali[sz]|re-?partition|drop(?:p)?|clear|empty)(?:e|es|ing|s)?\b"
    rf".{{0,24}}\b(?:{_WHAT})\b",
    r"\bfactory[ -]reset\b|格式化|删除(?:所有|全部)|清空|抹掉|初期化|\bformatier\w*|форматир\w*|"
    r"\bformate[rz]\b|\bformatea\w*|\bl[öo]sch\w*.{0,20}\ball|\bsupprime\w*.{0,20}\bt(?:out|ous)\b",
)
_PROTECTION = (
    r"ecc|checksums?|verif\w*|valid\w*|integrity|firewalls?|selinux|apparmor|seccomp|auth\w*|audit\w*|tls|ssl|"
    r"certificates?|signatures?|encryption|anti-?virus|monitoring|logging|alert\w*|backups?|quotas?|safety|"
    r"security|sandbox\w*|permissions?|fsck|scrub\w*|fans?|cooling|thermal|throttl\w*|power (?:cap|limit)s?|"
    r"iommu|acs|mfa|2fa|passwords?|access controls?|row ?remap\w*|page retire\w*"
)
_UNPROTECTS = (
    rf"\b(?:disabl\w*|(?:turn|switch|shut)(?:t?ing)?(?: \w+)? off|deactivat\w*|bypass\w*|skip(?:ping)?|"
    rf"ignor(?:e|ing)|suppress\w*|circumvent\w*|overrid(?:e|ing)|unset|remov(?:e|ing)|without)\b"
    rf".{{0,30}}\b(?:{_PROTECTION})\b",
    rf"\b(?:{_PROTECTION})\b\s*(?:=|:|to)?\s*(?:off|0|false|disabled)\b",
    rf"\b(?:{_PROTECTION})\b(?: \w+)?(?: off\b|.{{0,24}}\b(?:should|can|must|may|to) be "
    r"(?:disabled|bypassed|skipped|turned off))",
    r"\b777\b|\bworld[- ]writable\b|\bas root\b|\bverify\s*[=:]\s*false",
    r"(?:关闭|禁用).{0,8}(?:ECC|校验|防火墙|验证)",
)
_DANGEROUS = re.compile("(?i)" + "|".join((*_ELSEWHERE, *_COMMANDS, *_LOADS_CODE, *_DESTROYS, *_UNPROTECTS)))
_INSIDE_WORDS = re.compile(r"(?<=\w)(?:\\|\"\"|''|``|\$@|\$\{\w*\})(?=\w)")


def is_dangerous(text: str) -> bool:
    """Whether advice would have somebody fetch or destroy something, or leads him elsewhere."""
    shown = unicodedata.normalize("NFKC", text)
    forms = (shown, in_latin_letters(shown), _INSIDE_WORDS.sub("", shown))
    return any(_DANGEROUS.search(each) is not None for each in forms)
