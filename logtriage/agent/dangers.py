"""Advice that must not be repeated: what fetches or loads code, destroys, gives secrets away, or takes a
protection away.

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
    # The paths by which programs find their code, into folders that anybody may write to.
    r"\b(?-i:PYTHONPATH|LD_LIBRARY_PATH|PATH|PERL5LIB|NODE_PATH|CLASSPATH|GCONV_PATH|NCCL_\w*PLUGIN)\b"
    r"\s*(?:=|:|to|with)\s*\S*(?:/tmp|/var/tmp|/dev/shm|~|\./)",
    r"\b(?:CUDA_INJECTION64_PATH|JAVA_TOOL_OPTIONS|NODE_OPTIONS|RUBYOPT|PERL5OPT)\b",
    r"\badd(?:ing)?\s+(?:(?:the|a|an|this|our|their|your)\s+)?(?:[\w.:/-]+\s+){0,2}"
    r"(?:repositor(?:y|ies)|repos?|ppa|(?:apt|package|yum) sources?|conda channels?)\b|"
    r"\badd-apt-repository\b|--(?:extra-)?index-url\b|--find-links\b|\bconfig-manager\b",
    r"\binstall\w*\b.{0,30}\b(?:hot-?fix(?:ed)?|patched|unofficial|unsigned|third[- ]party|modified|custom|"
    r"forked)\b.{0,30}\b(?:packages?|wheels?|builds?|drivers?|versions?|modules?|librar(?:y|ies)|plugins?|from)\b",
)
_SECRET = (
    r"tokens?\b(?! (?:ids?|per|counts?|batch\w*|streams?|embedding\w*))|(?:api|access|private|ssh)[ _-]?"
    r"keys?\b|keys?\b(?! (?:frames?|points?|metrics?|figures?|values?))|passw\w+|passphrases?|secrets?\b|"
    r"credentials?|kubeconfig|cookies?\b|[~\w/]*\.(?:ssh|aws|netrc|gnupg|kube|pgpass|git-credentials)\b|"
    r"id_(?:rsa|dsa|ecdsa|ed25519)\b|/etc/(?:shadow|passwd|sudoers)\b|"
    r"contents? of (?:~|/(?:etc|root|home)|\.env)"
)
_GIVES_AWAY = (
    rf"\b(?:post|past|send|upload|e-?mail|mail|publish|forward|attach|shar|submit|disclos|reveal|leak|exfiltrat)"
    rf"(?:e|es|s|ing|ting|ed)?\b.{{0,40}}(?<![\w-])(?:{_SECRET})",
    r"\b(?:cat|print|echo|show|dump|copy|display)\b.{0,24}(?:~/?|/root/|/home/\S*/)?(?:\.ssh/|\.netrc\b|\.aws/|"
    r"\.gnupg\b|\.kube/|/etc/shadow\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b)",
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
    r"\b(?:terraform|pulumi|tofu|cdk|vagrant)\s+destroy\b|\bdestroy\w*\b.{0,24}\b(?:stack|infrastructure|"
    r"deployment|environment|namespace)s?\b",
    r"\b(?:overwrit|clobber|delet|eras|remov|purg|drop)\w*\b.{0,24}\b(?:newest|latest|last|most recent|only|"
    r"best|final)\b.{0,16}\b(?:checkpoints?|ckpts?|snapshots?|backups?|weights)\b",
    r"\b(?:reboot|shutdown|poweroff|halt)\s+(?:-\S+\s+)*-\w*[fn]\w*\b|\bsysrq\b|\bre-?imag(?:e|es|ed|ing)\b|"
    r"\bre-?install\w*\b.{0,20}\b(?:os|operating system|nodes?|machines?)\b",
    r"\bkill\w*\b.{0,40}\b(?:other|all|every|another)\b.{0,20}\b(?:users?|people|jobs|tenants?)\b|"
    r"\bkill\w*\s+(?:all|every|any)\s+(?:\w+\s+)?process(?:es)?\b(?!\s+(?:of|from|in) (?:this|the|that|its))",
    r"\bfactory[ -]reset\b|格式化|删除(?:所有|全部)|清空|抹掉|初期化|\bformatier\w*|форматир\w*|"
    r"\bformate[rz]\b|\bformatea\w*|\bl[öo]sch\w*.{0,20}\ball|\bsupprime\w*.{0,20}\bt(?:out|ous)\b",
)
_PROTECTION = (
    r"ecc|checksums?|verif\w*|valid\w*|integrity|firewalls?|selinux|apparmor|seccomp|auth\w*|audit\w*|tls|ssl|"
    r"certificates?|signatures?|encryption|anti-?virus|monitoring|logging|alert\w*|backups?|quotas?|safety|"
    r"security|sandbox\w*|permissions?|fsck|scrub\w*|fans?|cooling|thermal|throttl\w*|power (?:cap|limit)s?|"
    r"iommu|acs|mfa|2fa|passwords?|access controls?|row ?remap\w*|page retire\w*|oom[ -]?killer|slowdowns?|"
    r"temperatures?|overheating|host[ -]?key\w*"
)
_UNPROTECTS = (
    rf"\b(?:disabl\w*|(?:turn|switch|shut)(?:t?ing)?(?: \w+)? off|deactivat\w*|bypass\w*|skip(?:ping)?|"
    rf"ignor(?:e|ing)|suppress\w*|circumvent\w*|overrid(?:e|ing)|unset|remov(?:e|ing)|without)\b"
    rf".{{0,30}}\b(?:{_PROTECTION})\b",
    rf"\b(?:{_PROTECTION})\b\s*(?:=|:|to)?\s*(?:off|0|false|disabled)\b",
    rf"\b(?:{_PROTECTION})\b(?: \w+)?(?: off\b|.{{0,24}}\b(?:should|can|must|may|to) be "
    r"(?:disabled|bypassed|skipped|turned off))",
    r"\bStrictHostKeyChecking(?: to)?\W{0,3}(?:no|off|accept)|\bUserKnownHostsFile\W{0,3}/dev/null|"
    r"\b\w*NO_VERIFY\w*|\b\w*(?:SSL|TLS|HTTPS|CERT)\w*VERIFY\w*\W{0,3}(?:0|no|off|false|none)\b|\bTLS_REJECT_UNAUTHORIZED|"
    r"\b\w*VERIFY_?(?:SSL|TLS|CERT\w*)\W{0,3}(?:0|no|off|false|none)\b|\bDISABLE_SSL|"
    r"--trusted-host|--allow-unauthenticated|--no-?gpg-?check|\bgpgcheck\W{0,3}0|--nogpg|\b0\.0\.0\.0/0|(?<!\w)::/0",
    r"\boom_(?:score_)?adj\b|\b(?:rais|increas|lift|relax|bump)\w*\b.{0,24}\b(?:thermal|temperature|slowdown|"
    r"shutdown|throttl\w*)\b.{0,16}\b(?:limit|threshold|cap|target|point)s?\b",
    r"\bmark\w*\b.{0,40}\b(?:samples?|shards?|records?|files?|data\w*|checkpoints?|rows?|blocks?|checks?|tests?)\b"
    r".{0,20}\bas (?:valid|good|clean|intact|ok|passed|verified|trusted)\b",
    r"\bcomment\w*\s+out\b.{0,24}\b(?:assert\w*|check\w*|valid\w*|verif\w*)\b",
    r"\b777\b|\bworld[- ]writable\b|\bas root\b|\bverify\s*[=:]\s*false",
    r"(?:关闭|禁用).{0,8}(?:ECC|校验|防火墙|验证)",
)
_DANGEROUS = re.compile(
    "(?i)" + "|".join((*_ELSEWHERE, *_COMMANDS, *_LOADS_CODE, *_GIVES_AWAY, *_DESTROYS, *_UNPROTECTS))
)
_INSIDE_WORDS = re.compile(r"(?<=\w)(?:\\|\"\"|''|``|\$@|\$\{\w*\})(?=\w)")


def is_dangerous(text: str) -> bool:
    """Whether advice would have somebody fetch, destroy, unprotect or give away something, or leads him
    elsewhere.
    """
    shown = unicodedata.normalize("NFKC", text)
    forms = (shown, in_latin_letters(shown), _INSIDE_WORDS.sub("", shown))
    return any(_DANGEROUS.search(each) is not None for each in forms)
