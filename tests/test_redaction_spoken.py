"""Secrets as people and command lines say them are hidden; ordinary words of training logs are not."""

from __future__ import annotations

import pytest
from growth import cpu_seconds, grows_evenly
from hypothesis import given
from hypothesis import strategies as st
from lines_of_secrets import parted

from logtriage.redaction import Redaction

# The secret stands between ⟦ and ⟧.
SAID = """
password for user bob: ⟦hunter22x⟧
Password of database runs is ⟦swordfish⟧
password set to ⟦hunter22x⟧ for bob
The password for the account svc-train has been reset to ⟦Winter2024⟧
changed the password of root to ⟦hunter22x⟧
ssh: bob@node1's password: ⟦Winter2024⟧
login failed with password ⟦hunter2⟧
wrong password '⟦hunter 22x⟧' for bob
passwd ⟦hunter22x⟧ rejected
username bob password ⟦hunter22x⟧
user: bob, pass: ⟦Winter2024⟧
Mot de passe : ⟦Winter2024⟧
パスワード：⟦winter24⟧
userPassword:: ⟦V2ludGVyMjAyNA==⟧
<password>⟦Winter2024⟧</password>
mysql -u root -p⟦S3cret⟧ runs
mysql -u root -p ⟦S3cret⟧ runs
mysqldump --password ⟦S3cret⟧ runs
pg_dump --password=⟦S3cr⟧ runs
mongosh -u a -p ⟦S3cret⟧
redis-cli -h cache1 -a ⟦S3cret⟧ ping
ldapsearch -D cn=a -w ⟦S3cret⟧
ipmitool -I lanplus -H bmc1 -U admin -P ⟦S3cret⟧ power status
['sshpass', '-p', '⟦S3cret⟧', 'ssh', 'x']
subprocess: ["mysql", "-u", "root", "-p⟦S3cret⟧"]
docker login -u bob -p⟦S3cret⟧
7z x -p⟦S3cret⟧ data.7z
smbclient //srv/share -U bob%⟦S3cret⟧
openssl rsa -passin pass:⟦S3cret⟧ -in k.pem
gpg --batch --passphrase ⟦S3cret⟧ -d x.gpg
echo ⟦S3cret⟧ | sudo -S reboot
echo "bob:⟦S3cret⟧" | chpasswd
htpasswd -b /etc/ht bob ⟦S3cret⟧
lftp -u bob,⟦S3cret⟧ ftp.example.org
vault login ⟦s3cretroot⟧
setenv DB_PASSWORD ⟦S3cret⟧
aws configure set aws_secret_access_key ⟦S3cretS3cret⟧
passwords=["⟦alpha7x⟧","⟦beta9y⟧"]
"passwords": ["⟦alpha7x⟧", "⟦beta9y⟧"]
api_keys: ['⟦alpha7x⟧', '⟦beta9y⟧']
secrets=(⟦alpha7x⟧, ⟦beta9y⟧)
passwords: ⟦alpha7x⟧, ⟦beta9y⟧
credentials={'user': 'jane', 'word': '⟦swordfish⟧'}
{"access":"⟦a8f3kq92mz⟧"}
{"refresh": "⟦a8f3kq92mz01⟧", "x": 1}
{\\"access\\":\\"⟦a8f3kq92mz⟧\\"}
{"jwt":"⟦a8f3kq92mz⟧"}
access=⟦a8f3kq92mz⟧&refresh=⟦b8f3kq92mz⟧
OPENAI_KEY=⟦abc12⟧
export ACME_KEY="⟦abc12⟧"
'ANTHROPIC_KEY': '⟦abcde⟧'
openai_key="⟦abc12x⟧"
DB_PASS=⟦ab12⟧
db_pass: ⟦ab12⟧
SMTP_PWD=⟦ab12⟧
REDIS_PW=⟦ab12⟧
{"name":"ACME_KEY","value":"⟦abc12⟧"}
ｐａｓｓｗｏｒｄ＝⟦ｈｕｎｔｅｒ２２⟧
ｐａｓｓｗｏｒｄ=⟦hunter22x⟧
pass\u200bword=⟦hunter22x⟧
p\u0430ssw\u043erd=⟦hunter22x⟧
𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝=⟦hunter22x⟧
ＯＰＥＮＡＩ＿ＫＥＹ＝⟦ａｂｃ１２⟧
passphrase ⟦correct-horse⟧
Passphrase "⟦correct horse battery⟧" refused
using passphrase ⟦swordfish⟧ for key id_rsa
token "⟦a8f3kq92mz⟧" refused
token '⟦letmeinplease⟧' was rejected
token ⟦a8f3kq92⟧ expired
refresh token ⟦abc12345x⟧
bad API key ⟦a8f3kq92mz⟧
client secret ⟦hunter22x⟧ is expired
using credentials bob / ⟦hunter22x⟧
credentials ⟦bob:hunter22x⟧
credentials (bob / ⟦hunter⟧)
logging in as bob with ⟦hunter22x⟧
using username "bob" and password "⟦hunter⟧"
login bob / ⟦hunter22x⟧ failed
""".strip().splitlines()


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("around", ["{}", "2026-03-01 09:00:31 ERROR [rank1] {}", "x.py:17: note ({})"])
def test_secrets_in_prose_and_on_command_lines_are_hidden(said: str, around: str) -> None:
    line, secrets = parted(around.format(said))
    redaction = Redaction()
    sent = redaction.redact(line)
    # Of `bob:…` the part behind the name is the secret.
    assert not [each for each in secrets if each.rpartition(":")[2] in sent], sent
    assert "<secret-" in sent and redaction.restore(sent) == line
    for each in secrets:
        assert each not in redaction.redact(f"again with {each} today")


ORDINARY = """
step 40 tokens: 4096 max_tokens=2048 token=None
tokens=4096 tokens_per_second=123456.7 num_tokens=8192 total_tokens: 1.2B
tokens/s 51234.8 | tokens/GPU 8192 | consumed tokens 1073741824
pad_token=<pad> eos_token=</s> bos_token=<s> unk_token=<unk>
pad_token='[PAD]' cls_token='[CLS]' mask_token="[MASK]"
eos_token='<|endoftext|>' pad_token="<|finetune_right_pad_id|>"
eos_token_id=128009 bos_token_id=128000 pad_token_id=None
special tokens map: {'additional_special_tokens': ['<|im_start|>', '<|im_end|>']}
Adding token "<|reserved_special_token_17|>" to the vocabulary
Unexpected token "}" in JSON at position 182
json.decoder: invalid token 'NaN' at line 3
tokenizer.json: token '▁the' has id 262
image_token='<image>' video_token='<video_pad>'
sort_key=length group_by_key=task cache_key=blocks.3
cache_key: 'layer12-block3' metric_key=eval_loss2
SORT_KEY=loss PRIMARY_KEY=run_id17 PARTITION_KEY=ds2024
model.layers.0.self_attn.k_proj.weight torch.Size([1024, 4096])
Missing key(s) in state_dict: "transformer.h.0.attn.c_attn.weight", "lm_head.bias".
Unexpected key(s) in state_dict: "module.encoder.layer1.0.conv1.weight".
KeyError: 'k_proj.weight' num_key_value_heads=8 head_dim=128
key_states = self.k_proj(hidden_states).view(bsz, q_len, 8, 128)
query_key_value.weight shape [12288, 4096] key_padding_mask=None
KeyError: 'secret_key' KeyError: 'api_key'
attn_implementation=flash_attention_2 use_cache=True past_key_values=None
forward pass: 12.4ms backward pass: 25.1ms optimizer pass 3.2ms
forward_pass=12.4ms backward_pass=25.1ms num_pass=2 second_pass: done
FORWARD_PASS=2.3ms BACKWARD_PASS=4.6ms
pass 1 of 3 over shard 17, first pass finished
warmup pass rank12 finished in 3.2 s
tests pass rank0 on node17
bypass: enabled compass=12 passthrough=True
secret santa dataset split=train rows=1200
Loading secret_sauce.py from /workspace/run
no credentials found, using anonymous access
ERROR loading credentials: Permission denied
Unable to locate credentials. You can configure credentials by running "aws configure".
botocore.exceptions.NoCredentialsError: Unable to locate credentials
credentials file /root/.docker/config.json does not exist
wandb: Currently logged in as: trainer7. Use `wandb login --relogin` to force relogin
wandb: ERROR api_key not configured (no-tty). call wandb.login(key=[your_api_key])
HF_TOKEN is not set; requests to the hub are unauthenticated
The token has not been saved to the git credentials helper.
huggingface_hub.errors.GatedRepoError: 401 Client Error. Access to model x is restricted
PermissionError: [Errno 13] Permission denied: '/data/ckpt/step-100'
password authentication failed for user "trainer"
fe_sendauth: no password supplied
sudo: a password is required
Permission denied (publickey,password).
Host key verification failed.
Connection closed by authenticating user root 10.0.0.7 port 22 [preauth]
PWD=/workspace/run OLDPWD=/workspace
access mode: ReadWriteMany, access=rw refresh=30s
{"access": "ReadWriteMany", "refresh": "30s"}
{"access": "2026-01-05T10:00:00Z", "lr": 1e-4}
memory access fault by GPU node-3 on address 0x7f3a2c000000
illegal memory access was encountered, an illegal address 0x55d0c0ffee00
access denied for shard-00017
refresh rate: 60 auth_mode=none author: jane
mpirun -np 8 -p 2222 --host node1,node2
srun -p gpu --nodes=2 -w node17 python train.py
docker run -p 8080:8080 --name train17 img:v1.2.3
ssh -p 2222 node17 nvidia-smi
psql -h db1 -p 5432 -U trainer runs
mkdir -p /data/ckpt/step-100
rsync -a src17 dst17
torchrun --nproc-per-node 8 --rdzv-id job17 --max-tokens 4096 train.py
python train.py --sort-key loss2 --cache-key layer3 --token-budget 4096
set NCCL_DEBUG=INFO; set seed 1234; set max_token limit 2048
ncclCommInitRank comm 0x55d0c0ffee00 rank 3 nranks 8 commId 0x8a3f
sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 of shard 7
RuntimeError: The size of tensor a (4096) must match the size of tensor b (2048) at non-singleton dimension 1
RuntimeError: shape '[8, 2048, 32, 128]' is invalid for input of size 1048576
Epoch 3/10 | step 1200/5000 | loss 2.3451 | lr 1.00e-04 | grad_norm 0.83
c10d::ProcessGroupNCCL::WorkNCCL at::native 12:00:01
collective sk-learn glove-6b-300d global-step-00001000-of-00005000
connected to node17 with gloo2; authenticated using munge
logging in with 8 workers; connecting to tcp://node17:29500
训练开始，密码学数据集，步数 100，损失 2.34
ошибка: потеряно соединение с узлом 3
""".strip().splitlines()


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_words_of_training_logs_stay(line: str) -> None:
    assert len(ORDINARY) >= 60
    assert Redaction().redact(line) == line


def test_a_whole_log_of_ordinary_lines_stays() -> None:
    text = "\n".join(ORDINARY)
    redaction = Redaction()
    redaction.learn(text)
    assert redaction.redact(text) == text and redaction.counts == {}


_NAMES = st.sampled_from(
    [
        "num",
        "max",
        "pad",
        "sort",
        "hidden",
        "attn",
        "kv",
        "cache",
        "layer",
        "tokens",
        "key",
        "value",
        "proj",
        "pass",
    ]
)
_SETTING = st.builds(
    lambda names, sign, value: "_".join(names) + sign + value,
    st.lists(_NAMES, min_size=2, max_size=4),
    st.sampled_from(["=", ": ", "="]),
    st.one_of(
        st.integers(0, 10**9).map(str),
        st.floats(0, 1e6, allow_nan=False).map(lambda value: f"{value:.4g}"),
        st.sampled_from(
            ["None", "True", "false", "'<pad>'", '"</s>"', "[1, 2048]", "<|im_end|>", "2.3ms", "0x7f3a"]
        ),
    ),
)


@given(st.lists(_SETTING, min_size=1, max_size=6).map(" ".join))
def test_settings_of_models_stay(line: str) -> None:
    assert Redaction().redact(line) == line


@given(
    st.lists(st.sampled_from([*SAID, *ORDINARY, "\u200b", "＝", "é", "e\u0301"]), max_size=5).map(" ".join)
)
def test_whatever_is_hidden_comes_back(text: str) -> None:
    redaction = Redaction()
    assert redaction.restore(redaction.redact(text)) == text


@pytest.mark.parametrize(
    "unit",
    [
        "password for a ",
        "credentials a:",
        "mysql -p",
        "passwords=[",
        "passphrase a ",
        "ｐａｓｓ",
        "token 'a ",
    ],
)
def test_hostile_sentences_take_linear_time(unit: str) -> None:
    assert grows_evenly(lambda size: unit * size, lambda text: Redaction().redact(text), 800)


def _knowing(secrets: int) -> Redaction:
    redaction = Redaction()
    redaction.learn("\n".join(f"password=Zx{number}q8w{number * 7}Lm" for number in range(secrets)))
    return redaction


def test_a_log_full_of_secrets_takes_no_time_for_the_lines_without() -> None:
    lines = [f"step {number} loss 2.31" for number in range(2_000)]
    few, many = _knowing(400), _knowing(20_000)
    assert many.redact_lines([*lines, "again Zx7q8w49Lm", "é Zx8q8w56Lm"])[-2:] == [
        "again <secret-8>",
        "é <secret-9>",
    ]
    assert few.redact_lines(lines) == many.redact_lines(lines) == lines
    # Fifty times the secrets: whoever looks for each of them in each line takes fifty times as long.
    of_few = min(cpu_seconds(lambda: few.redact_lines(lines)) for _ in range(3))
    assert min(cpu_seconds(lambda: many.redact_lines(lines)) for _ in range(3)) < 12 * of_few


def test_half_a_character_neither_breaks_nor_hides_anything() -> None:
    text = "\ud800 password=hunter\ud80022x é \udfff"
    redaction = Redaction()
    sent = redaction.redact(text)
    assert "hunter" not in sent and "password=<secret-" in sent
    assert redaction.restore(sent) == text
