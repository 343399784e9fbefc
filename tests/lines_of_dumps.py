"""Lines of programs with secrets, between ⟦ and ⟧: dumps of arguments, lists of words, calls, columns."""

# ruff: noqa: E501 - lines are as programs write them

from __future__ import annotations

DUMPS = r"""
  hf_token ........................................ ⟦Xk9pQ2vLm4⟧
  wandb_api_key ................................... ⟦Xk9pQ2vLm4⟧
  db_password ..................................... ⟦swordfish⟧
[rank0]:   wandb_key .............................. ⟦teapot77⟧
  s3_secret_key .................. ⟦0f9e8d7c6b5a4f3e⟧
  mlflow_tracking_password ...... ⟦Xk9pQ2vLm4⟧
| db_password | ⟦Xk9pQ2vLm4⟧ |
| hf_token        | ⟦Xk9pQ2vLm4⟧      |
│ wandb_api_key │ ⟦Xk9pQ2vLm4⟧ │
| smtp_pass | ⟦swordfish⟧ |
db_password    ⟦Xk9pQ2vLm4⟧
hf_token                 ⟦Xk9pQ2vLm4⟧
  mysql_pwd            ⟦swordfish⟧
aws_secret_access_key	⟦Xk9pQ2vLm4⟧
| 12 | svc | db_password | ⟦swordfish⟧ | yes |
svc  db_password  ⟦Xk9pQ2vLm4⟧  prod
""".strip("\n").splitlines()

LISTS = r"""
Command '['curl', '-u', 'svc:⟦Xk9pQ2vLm4⟧', 'https://x']' returned non-zero exit status 22.
subprocess.CalledProcessError: Command '['curl', '--user', 'svc:⟦swordfish⟧', 'https://x']' died with <Signals.SIGKILL: 9>.
cmd=["wget", "--http-user=svc", "--http-password=⟦swordfish⟧", "https://x"]
['wandb', 'login', '⟦Xk9pQ2vLm4⟧']
\['wandb',\ 'login',\ '⟦Xk9pQ2vLm4⟧'\]
['huggingface-cli', 'login', '--token', '⟦Xk9pQ2vLm4⟧']
["wandb", "login", "--relogin", "⟦swordfish⟧"]
argv=['train.py', '--wandb-key', '⟦Xk9pQ2vLm4⟧']
sys.argv: ['train.py', '--hub-token', '⟦teapot77⟧', '--lr', '0.1']
["/usr/bin/python", "train.py", "--comet-key", "⟦teapot77⟧"]
['mc', 'alias', 'set', 'store', 'https://s3.example.org', 'key', '⟦swordfish⟧']
args: ('vault', 'login', '⟦Xk9pQ2vLm4⟧')
['aws', 'configure', 'set', 'aws_secret_access_key', '⟦teapot77⟧']
Popen(['redis-cli', '-h', 'cache1', '-a', '⟦swordfish⟧', 'ping'])
[\"curl\", \"-u\", \"svc:⟦Xk9pQ2vLm4⟧\", \"https://x\"]
["ngrok", "config", "add-authtoken", "⟦Xk9pQ2vLm4⟧"]
['net', 'user', 'svc', '⟦swordfish⟧', '/add']
["docker", "login", "-u", "svc", "-p", "⟦swordfish⟧", "reg.example.org"]
['kubectl', 'create', 'secret', 'generic', 'db', '--from-literal=word=⟦swordfish⟧']
['htpasswd', '-b', '/etc/ht', 'svc', '⟦swordfish⟧']
['wpa_passphrase', 'lab', '⟦swordfish⟧']
""".strip().splitlines()

KEYS = r"""
wandb: Appending key for api.wandb.ai to your netrc file: ⟦0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e⟧
wandb: Appending key for wandb.example.org to your netrc file: ⟦9f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e⟧
comet: wrote key of comet.com to /root/.comet.config: ⟦0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c⟧
storing the key for api.neptune.ai in the keyring: ⟦0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f1e⟧
using ⟦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⟧ for traces
langsmith ⟦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⟧
tracing with ⟦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⟧, project runs
""".strip().splitlines()

SETTINGS = r"""
export HF_TOKEN=$'⟦Xk9pQ2vLm4⟧'
export DB_PASSWORD=$"⟦swordfish⟧"
HF_TOKEN=$'⟦teapot77⟧' python train.py
hf_token=SecretStr(⟦Xk9pQ2vLm4⟧)
hf_token=SecretStr('⟦Xk9pQ2vLm4⟧')
db_password: Secret('⟦swordfish⟧')
api_key=pydantic.SecretStr("⟦teapot77⟧")
wandb_key=str(⟦Xk9pQ2vLm4⟧)
os.putenv("WANDB_API_KEY", "⟦Xk9pQ2vLm4⟧")
os.putenv('DB_PASSWORD', '⟦swordfish⟧')
os.environ.setdefault("HF_TOKEN", "⟦Xk9pQ2vLm4⟧")
monkeypatch.setenv("HF_TOKEN", "⟦teapot77⟧")
os.environ.get("DB_PASSWORD", "⟦swordfish⟧")
conf.set("fs.s3a.secret.key", "⟦Xk9pQ2vLm4⟧")
<add key="DbPassword" value="⟦Xk9pQ2vLm4⟧"/>
<property name="javax.persistence.jdbc.password" value="⟦swordfish⟧"/>
<entry key='ApiToken' value='⟦teapot77⟧' />
<property><name>fs.s3a.secret.key</name><value>⟦Xk9pQ2vLm4⟧</value></property>
body=%7B%22token%22%3A%22⟦Xk9pQ2vLm4⟧%22%7D
GET /cb?state=%7B%22password%22%3A%22⟦swordfish⟧%22%7D
q=api_key%3D⟦Xk9pQ2vLm4⟧%26page%3D1
form%5Bpassword%5D=⟦swordfish⟧
requirepass ⟦Xk9pQ2vLm4⟧
requirepass "⟦swordfish⟧"
masterauth ⟦teapot77⟧
wandb_key ⟦kettle12⟧
CONFIG SET requirepass ⟦swordfish⟧
SSHPASS=⟦Xk9pQ2vLm4⟧ sshpass -e ssh node1
SSHPASS='⟦swordfish⟧'
PGPASSWORD=⟦swordfish⟧ psql runs
RSYNC_PASSWORD=⟦swordfish⟧
master key=⟦Xk9pQ2vLm4⟧
master key: ⟦Xk9pQ2vLm4⟧
shared secret = ⟦swordfish⟧
signing key=⟦teapot77⟧
keys: {"openai": "⟦Xk9pQ2vLm4⟧"}
keys={'anthropic': '⟦Xk9pQ2vLm4⟧', 'cohere': '⟦Yk8pQ3vLm5⟧'}
tokens: {"hf": "⟦Xk9pQ2vLm4⟧"}
tokens: ["⟦Xk9pQ2vLm4⟧", "⟦Yk8pQ3vLm5⟧"]
tokens=['⟦Xk9pQ2vLm4⟧']
tokens: [⟦Xk9pQ2vLm4⟧, ⟦Yk8pQ3vLm5⟧]
munge key ⟦Xk9pQ2vLm4⟧ differs
munge key ⟦0f9e8d7c6b5a4f3e⟧ does not match that of node7
the munge.key ⟦Xk9pQ2vLm4⟧ of node7 is another
slurm jwt key ⟦Xk9pQ2vLm4⟧ differs from the controller's
password of svc was changed from ⟦Xk9pQ2vLm4⟧ to ⟦Yk8pQ3vLm5⟧
the password for db was changed from ⟦swordfish⟧ to ⟦teapot77⟧
HF_TOKEN changed from ⟦Xk9pQ2vLm4⟧ to ⟦Yk8pQ3vLm5⟧
api key rotated: ⟦Xk9pQ2vLm4⟧ -> ⟦Yk8pQ3vLm5⟧
authentication of svc with ⟦Xk9pQ2vLm4⟧ failed
authentication as svc with ⟦Xk9pQ2vLm4⟧ was refused
could not authenticate svc with ⟦Xk9pQ2vLm4⟧
login of svc using ⟦teapot77⟧ failed
""".strip().splitlines()

# Found when all of the above were hidden.
LATER = r"""
DEBUG headers: [('Authorization', '⟦Xk9pQ2vLm4⟧'), ('Accept', '*/*')]
headers=[(b'x-api-key', b'⟦Yk8pQ3vLm5⟧')]
[("private-token", "⟦teapot77⟧")]
│   hf_token: str = '⟦teapot77⟧'   │
wandb_key: Optional[str] = "⟦kettle12⟧"
db_password: str | None = '⟦swordfish⟧'
AssertionError: expected token '⟦Xk9pQ2vLm4⟧' but got '⟦Yk8pQ3vLm5⟧'
the api key is ⟦Xk9pQ2vLm4⟧ instead of ⟦Yk8pQ3vLm5⟧
process cmdline: [b'train.py', b'--wandb-key', b'⟦Xk9pQ2vLm4⟧']
Set-Item Env:WANDB_API_KEY ⟦teapot77⟧
HF_TOKEN ⟦Xk9pQ2vLm4⟧ != ⟦Yk8pQ3vLm5⟧
""".strip().splitlines()

# A word and two digits beside a noun: as short as the names of ranks, and still a secret.
SHORT = r"""
os.environ["HF_TOKEN"] = "⟦teapot77⟧"
os.environ['WANDB_API_KEY']='⟦kettle12⟧'
hub_token: "⟦teapot77⟧"
train.py --wandb-key ⟦teapot77⟧ --lr 0.1
train.py --wandb-key=⟦kettle12⟧
train.py --hub-token ⟦teapot77⟧
--api_key ⟦teapot77⟧
Authorization: ⟦teapot77⟧
-H 'Authorization: ⟦kettle12⟧'
X-Api-Key: ⟦teapot77⟧
aws configure set aws_secret_access_key ⟦teapot77⟧
aws configure set aws_session_token ⟦kettle12⟧ --profile train
git config --global github.token ⟦teapot77⟧
gcloud config set auth/access_token ⟦teapot77⟧
echo ⟦teapot77⟧ | passwd --stdin svc
echo '⟦teapot77⟧' | sudo passwd --stdin svc
printf '⟦kettle12⟧\n' | passwd svc --stdin
echo ⟦teapot77⟧ | gh auth login --with-token
echo "⟦kettle12⟧" | gh auth login --hostname git.example.org --with-token
echo ⟦teapot77⟧ | glab auth login --stdin
cat <<< ⟦teapot77⟧ | gh auth login --with-token
gh auth login --with-token <<< ⟦kettle12⟧
wandb login ⟦teapot77⟧
""".strip().splitlines()

# Settings with the same words that hold no secret.
PLAIN = r"""
gcloud auth activate-service-account --key-file /p/k.json
gcloud auth activate-service-account svc --key-file=/secrets/k.json
['gcloud', 'auth', 'activate-service-account', '--key-file', '/p/k.json']
rsync --password-file /p/pw -a src dst
rsync --password-file=/p/pw -a src dst
  num_key_value_heads ............................. 8
  tokenizer_type .................................. GPT2BPETokenizer
  pad_token_id .................................... 0
  max_tokens ...................................... 4096
  key_value_memory_dict ........................... {}
  secret_name ..................................... regcred
  eod_token ....................................... <|endoftext|>
  tokenizer_model ................................. /data/tok/llama3.model
  hf_token ........................................ None
  wandb_key_file .................................. /root/.wandb
  reset_attention_mask ............................ False
  sequence_parallel_key ........................... None
  train_tokens .................................... 1000000
  group_query_attention_key ....................... layer12
  tokenizer_key ................................... text12
  json_keys ....................................... ['text']
  sort_key ........................................ len12
| token | count12 |
| key | value12 |
| num_tokens      | 4096 |
| pad_token | <pad> |
| User | Password | Required |
user  password  database
| Name | Key    | Type12 |
pad_token    <pad>
Key             Value12
tokens: ["hello", "world2", "Ġthe"]
tokens: ['▁the', 'rank12', 'step-100']
keys: {"input_ids": "int64", "label": "float32"}
keys: ["layer12", "rank0"]
keys=['lm_head.weight', 'model.layers.0.mlp.w1']
Command '['torchrun', '--nproc-per-node', '8', 'train.py', '--max-tokens', '4096']' returned non-zero exit status 1.
argv=['train.py', '--sort-key', 'len12', '--tokenizer', 'llama3']
argv=['train.py', '--text-key', 'content12', '--json-keys', 'text2']
['docker', 'run', '-p', '8080:8080', '-u', '1000:1000', 'img12']
['curl', '-u', 'svc', 'https://x']
config changed from bf16 to fp8
learning rate was changed from 1e-4 to 3e-5 by rank12
key changed from layer12 to layer13
authentication of service7 failed
authentication of svc with munge failed
authentication with munge of user12 failed
echo hello12 | tee out.txt
echo step12 | grep step
os.environ.setdefault("NCCL_DEBUG", "INFO")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.get("HF_TOKEN", None)
os.environ.get("HF_TOKEN_PATH", "/root/.cache/token")
<add key="MaxTokens" value="4096"/>
<add key="CacheKey" value="layer12"/>
munge key /etc/munge/munge.key differs on node12
the munge key differs between node12 and node13
cache key layer12 differs
checksum of key shard12 differs: 0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c
sha256 of munge.key differs on node12
Tokenizer key: ["text"] vocab_size=32000
--tokenizer-key text12 --dict-key mp12
Object key of s3: 0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c
[('token', 'hello12'), ('key', 'value12')]
('password', 'wrong')
token: str = 'hello12'
expected token 'hello12' but got 'world13'
pass_rate .... 0.412
token_type .... bearer
""".strip("\n").splitlines()
