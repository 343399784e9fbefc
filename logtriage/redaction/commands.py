"""Commands that are given a secret as an argument, as one text or as a list of its words."""

from __future__ import annotations

_SEPARATOR = r"(?:\s+|[\"']\s*,\s*[\"'])"  # between two words of a command, or of a list of its words
_REST = r"[^\n]{0,200}?"
_WORD = r"[\"'`]?(?P<v>[^\s\"'`\\]+)"
_NAMED_SO = r"[\w.@-]{1,64}"
_OPTIONS = r"(?:-\S+\s+)*"

# How an option and its value are joined.
_APART, _TOGETHER, _EITHER = rf"(?:=|{_SEPARATOR})", "", rf"(?:=|{_SEPARATOR})?"

# (command, option, how joined, what of the value is taken, see `spoken.SPOKEN`).
_BY_OPTION: tuple[tuple[str, str, str, str], ...] = (
    (r"(?:mysql\w*|mariadb[\w-]*)", "-p", rf"(?:{_SEPARATOR})?", "password"),
    (
        r"(?:sshpass|mongo(?:sh|dump|restore|export|import|stat)?|cqlsh|cypher-shell|login)",
        "-p",
        _EITHER,
        "given",
    ),
    (r"(?:ipmitool|sqlcmd|bcp|tsql|isql|unzip|zip|mosquitto_(?:pub|sub|rr))", "-P", _EITHER, "given"),
    (r"(?:kinit|racadm|redfishtool|useradd|usermod)", "-p", _APART, "given"),
    (r"redis-(?:cli|benchmark)", "-a", _APART, "given"),
    (r"ldap(?:search|modify|add|delete|whoami|passwd)", "-w", _APART, "given"),
    (r"(?:7z[arz]?|rar|unrar)", "-p", _TOGETHER, "given"),
    (r"(?:smbclient|rpcclient)", "-U", rf"{_EITHER}[\w.\\/@-]{{1,64}}%", "given"),
    (r"(?:lftp|ncftp\w*)", "-u", rf"{_EITHER}{_NAMED_SO},", "given"),
    (r"openssl", "-[kK]", _APART, "told"),
    (r"ssh-keygen", "-[NP]", _APART, "given"),
    (r"snmp(?:get|walk|set|bulkwalk|trap)", "-[AXc]", _APART, "given"),
    (r"(?:xfreerdp\d?|wfreerdp)", "/p:", _TOGETHER, "given"),
    (r"(?:doctl|flyctl|vercel|netlify|railway)", "-t", _APART, "odd"),
)

# (command and what stands between it and the secret, what is taken).
_BY_PLACE: tuple[tuple[str, str], ...] = (
    (
        rf"(?:wandb|huggingface-cli|hf(?:\s+auth)?|comet|clearml|neptune|swanlab)\s+login\s+{_OPTIONS}",
        "strange",
    ),
    (rf"vault\s+login\s+{_OPTIONS}", "given"),
    (r"(?-i:AUTH)\s+(?:(?:PLAIN|LOGIN|default)\s+)?", "strange"),  # of Redis and SMTP
    (rf"mc\s+(?:alias\s+set|config\s+host\s+add)\s+{_OPTIONS}\S+\s+\S+\s+\S+\s+", "given"),
    (rf"mc\s+(?:alias\s+set|config\s+host\s+add)\s+{_OPTIONS}\S+\s+\S+\s+", "odd"),
    (r"rclone\s+(?:obscure|reveal)\s+", "given"),
    (
        rf"rclone\s+config\s+(?:create|update){_REST}\s(?:pass(?:word)?2?|[\w-]*(?:key|token|secret))[ =]",
        "given",
    ),
    (rf"ngrok\s+(?:config\s+add-)?authtoken\s+{_OPTIONS}", "given"),
    (r"wpa_passphrase\s+\S+\s+", "given"),
    (r"net\s+user\s+\S+\s+", "given"),
    (rf"htpasswd\s+{_OPTIONS}-[A-Za-z]*b[A-Za-z]*\s+{_OPTIONS}\S+\s+\S+\s+", "given"),
    (rf"kubectl{_REST}--from-literal[ =][\w.-]+=", "given"),
    (rf"(?:sudo|kinit|chpasswd|cryptsetup|login|passwd)\b{_REST}<<<\s*(?:{_NAMED_SO}:)?", "given"),
    (r"(?:login|authenticate|set_api_key)\(\s*(?:\w+\s*=\s*)?[\"']", "strange"),
    (r"(?:setenv\s+|Set-Item\s+(?:-Path\s+)?Env:)\w*(?:pass|pwd|secret|token|_key)\w*\s+", "given"),
    (
        r"config(?:ure)?\s+(?:set\s+|add\s+|--[\w-]+\s+)*"
        r"[\w./:-]*(?:pass|pwd|secret|token|(?:api|access|private)[_-]?key)[\w.-]*\s+",
        "password",
    ),
    (r"set\s+[\w./:-]*(?:pass|pwd|secret|token|[_-]key)[\w.-]*\s+", "odd"),
)

# What stands before the pipe of these, or in their here-string, is a secret.
_READS = (
    r"(?:sudo\s+(?:-\w+\s+)*-S|kinit|cryptsetup|gpg\b[^|\n]{0,80}--passphrase-fd|"
    r"openssl\b[^|\n]{0,80}-pass\s+stdin|"
    r"(?:[\w./-]+\s+){1,3}[^|\n]{0,80}--?(?:(?:password-|token-|secret-)?stdin|with-token)\b)"
)

COMMANDS: tuple[tuple[str, int, str], ...] = (
    ("given", 4, rf"(?i)(?:^|[\s\"'(\[,;=])--?[\w-]*pass(?:word|wd|phrase|code)s?(?:[ =]+|{_SEPARATOR})"
     r"[\"']?(?P<v>[^\s\"'-][^\s\"'\\]+)"),
    ("given", 4, rf"(?i)-pass(?:in|out)?{_SEPARATOR}[\"']?pass:(?P<v>[^\s\"']+)"),
    *(
        (kind, 4, rf"\b{command}\b{_REST}[\s\"']{option}{joined}{_WORD}")
        for command, option, joined, kind in _BY_OPTION
    ),
    *((kind, 4, rf"(?i)\b{before}{_WORD}") for before, kind in _BY_PLACE),
    ("strange", 4, r"\bsend(?:_user)?\s+(?:--?\s+|-h\s+)?\\*[\"'](?P<v>[^\s\"'\\]+)\\+[rn]"),  # of expect
    # Before a pipe.
    ("given", 4, r"\b(?:echo|printf)\s+(?:-n\s+)?[\"']?(?P<v>[^\s\"'|]+?)(?:\\n)?[\"']?\s*\|\s*"
     rf"{_READS}"),
    ("given", 4, r"<<<\s*[\"']?(?P<v>[^\s\"'|]+)[\"']?\s*\|\s*"
     rf"{_READS}"),
    ("given", 4, r"\becho\s+[\"']?[\w.-]{1,64}:(?P<v>[^\s\"'|]+)[\"']?\s*\|\s*(?:sudo\s+)?chpasswd"),
    # `sqlplus svc/…@db`.
    ("given", 4, rf"(?i)\b(?:sqlplus|sqlldr|expdp|impdp|rman|oracle|dsn|connect\w*|logon|credentials?){_REST}"
     rf"\b{_NAMED_SO}/(?P<v>[^\s/@\"']+)@[\w./:-]+"),
    ("strange", 4, r"\b[a-z][\w.-]{0,32}/(?P<v>[^\s/@\"':]{4,64})@"
     r"(?:[a-z]*db\w*|\w*sql\w*|orcl\w*|pdb\w*|xe)\b"),
)  # fmt: skip
