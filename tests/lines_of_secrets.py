"""Lines with secrets, between ⟦ and ⟧, and ordinary lines of training logs that hold words of secrets."""

# ruff: noqa: E501 - lines are as programs write them

from __future__ import annotations

from logtriage.redaction import Redaction

# Written before the code that hides them.
TOLD = r"""
ansible_become_pass=⟦Zw8rkQm2⟧
SLURM_JWT=⟦Zw8rkQm2Lx90PqTv⟧
JWT=⟦Zw8rkQm2⟧
bind_pw=⟦Zw8rkQm2⟧
sas=⟦Zw8rkQm2⟧
creds=svc:⟦Zw8rkQm2⟧
WANDB_API_KEY ⟦Zw8rkQm2⟧ invalid
NGC_CLI_API_KEY is set to ⟦Zw8rkQm2⟧
HF_TOKEN is ⟦Zw8rkQm2⟧
HF_TOKEN environment variable is ⟦Zw8rkQm2⟧
the token is ⟦Zw8rkQm2⟧
invalid token ⟦Zw8rkQm2⟧
aws_secret_access_key is ⟦Zw8rkQm2⟧ rejected
client_secret ⟦Zw8rkQm2⟧
session key ⟦Zw8rkQm2⟧
bearer ⟦Zw8rkQm2⟧ rejected
pwd -> ⟦Zw8rkQm2⟧
passphrase for the key "⟦swordfish⟧" wrong
tried passwords a, ⟦Zw8rkQm2⟧
tried passwords dog, ⟦swordfish⟧, ⟦Zw8rkQm2⟧
with ⟦Zw8rkQm2⟧ as password
with ⟦swordfish⟧ as password
⟦Zw8rkQm2⟧ is not a valid password
⟦swordfish⟧ is not a valid password
PIN: ⟦Zw8rkQm2⟧
PIN: ⟦48213⟧
unlock code ⟦Zw8rkQm2⟧
unlock code is ⟦48213⟧
auth=('svc','⟦Zw8rkQm2⟧')
requests.get(url, auth=("svc", "⟦swordfish⟧"))
basic_auth=('svc', '⟦swordfish⟧')
HTTPBasicAuth('svc', '⟦Zw8rkQm2⟧')
svc/⟦Zw8rkQm2⟧@db
sqlplus svc/⟦swordfish⟧@//db7:1521/runs
'Basic ⟦Zw8rkQm2⟧'
headers={'X-Auth': 'Bearer ⟦swordfish⟧'}
wandb login ⟦Zw8rkQm2⟧
wandb login ⟦swordfish⟧
redis AUTH ⟦Zw8rkQm2⟧
redis: AUTH ⟦swordfish⟧
openssl enc -k ⟦Zw8rkQm2⟧
openssl enc -aes-256-cbc -in a.tar -k ⟦swordfish⟧
mc alias set a url ⟦Kx7Qm2Rt⟧ ⟦Zw8rkQm2⟧
mc alias set store https://s3.example.org key ⟦swordfish⟧
rclone obscure ⟦Zw8rkQm2⟧
rclone obscure ⟦swordfish⟧
rclone config create store s3 pass ⟦swordfish⟧
kinit -p ⟦Zw8rkQm2⟧
send "⟦Zw8rkQm2⟧\r"
send -- "⟦swordfish⟧\n"
ansible_ssh_pass: ⟦swordfish⟧
become_pass: "⟦swordfish⟧"
vnc_pw = ⟦swordfish⟧
ldapBindPw=⟦swordfish⟧
dbPass: ⟦Zw8rkQm2⟧
"smtpPwd": "⟦swordfish⟧"
clientSecret -> ⟦swordfish⟧
apiKey := ⟦Zw8rkQm2⟧
API_KEY_2=⟦Zw8rkQm2⟧
DB_PASSWORD_PROD=⟦swordfish⟧
SECRET_KEY_BASE=⟦Zw8rkQm2Lx⟧
sessionToken='⟦Zw8rkQm2⟧'
REGISTRY_AUTH=⟦Zw8rkQm2⟧
AZURE_SAS=⟦Zw8rkQm2⟧
encryption-key: ⟦Zw8rkQm2⟧
os.environ['MLFLOW_TRACKING_PASSWORD'] = '⟦swordfish⟧'
os.environ["NEPTUNE_API_TOKEN"]="⟦swordfish99⟧"
env["DB_PASS"]: ⟦swordfish⟧
credentials=["svc", "⟦swordfish⟧"]
login(token="⟦swordfish99⟧")
wandb.login(key='⟦swordfish⟧')
Client(api_key = "⟦swordfish⟧")
connect(user="svc", passwd="⟦swordfish⟧")
the API key ⟦Zw8rkQm2⟧ was revoked yesterday
access key ⟦Zw8rkQm2⟧ does not exist in our records
your api key is ⟦Zw8rkQm2⟧, keep it safe
using secret ⟦Zw8rkQm2⟧ from the environment
the password ⟦swordfish⟧ has expired
the wrong passphrase ⟦swordfish⟧ was given
⟦Zw8rkQm2⟧: bad password
password mismatch: got ⟦Zw8rkQm2⟧
tried ⟦Zw8rkQm2⟧ as API key
unable to log in with password '⟦swordfish⟧'
password incorrect (⟦Zw8rkQm2⟧)
SECRET_KEY is ⟦Zw8rkQm2⟧ in this container
exported HF_TOKEN with value ⟦Zw8rkQm2⟧
jwt ⟦Zw8rkQm2Lx90⟧ is malformed
got jwt: ⟦Zw8rkQm2Lx90⟧
cookie ⟦Zw8rkQm2Lx90⟧ rejected
refresh_token ⟦Zw8rkQm2⟧ expired
ssh-keygen -t rsa -N ⟦swordfish⟧ -f id
snmpwalk -v3 -A ⟦Zw8rkQm2⟧ bmc7
xfreerdp /u:bob /p:⟦swordfish⟧
sudo -S reboot <<< ⟦swordfish⟧
kubectl create secret generic db --from-literal=word=⟦swordfish⟧
ngrok authtoken ⟦Zw8rkQm2Lx90⟧
useradd -m -p ⟦Zw8rkQm2⟧ bob
wpa_passphrase lab ⟦swordfish⟧
uploading with ⟦q7Fz2Lk9Rt4Vx8Bn1Mw6⟧ now
got 403 for ⟦aB3dE5fG7hJ9kL1mN3pQ5rS7⟧
""".strip().splitlines()

ORDINARY = r"""
tokens=4096 pad_token=<pad> sort_key=length k_proj.weight num_key_value_heads=8
cache_key: 3f2a eos token id 128009, tokens per second 51234.8
auth plugin loaded: auth/munge
pass 1 of 3
forward pass took 3 s
backward pass took 25.1 ms on rank 7
secret santa dataset loaded
secret "regcred" not found
Error: secret "hf-hub-credentials" not found
MountVolume.SetUp failed for volume "creds" : secret "train-creds-v2" not found
FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (regcred)
secrets "wandb-key" is forbidden: User "system:serviceaccount:ml:trainer7" cannot get resource "secrets"
couldn't find key api-key in Secret ml/wandb-key7
Error: couldn't find key HF_TOKEN in Secret train/hf-secret
failed to sync secret cache: timed out waiting for the condition
references non-existent secret key: token7
kubectl create secret generic regcred7 --from-file=.dockerconfigjson
imagePullSecrets: [{'name': 'regcred'}]
secretName: tls-cert7
secret_name=regcred
password_file=/etc/mysql/pw.txt
token_type=bearer auth_mode=none
AuthType=auth/munge AuthInfo=(null)
AUTH_TYPE=kerberos
slurmd: auth/munge: credential cannot be decoded: Expired credential
slurmctld: error: Munge decode failed: Expired credential
slurmd: error: slurm_auth_verify: authentication of service7 failed
Token indices sequence length is longer than the specified maximum sequence length for this model (5120 > 4096).
Special tokens have been added in the vocabulary, make sure the associated word embeddings are fine-tuned.
Setting `pad_token_id` to `eos_token_id`:128001 for open-end generation.
The attention mask and the pad token id were not set.
The tokenizer class you load from this checkpoint is 'LlamaTokenizer'.
The tokenizer has new PAD/BOS/EOS tokens that differ from the model config
Updated tokens: {'bos_token_id': 151643, 'eos_token_id': 151645}
We will use 90% of the memory on device 0 for storing the model
You are using the default legacy behaviour of the <class 'transformers.models.llama.tokenization_llama.LlamaTokenizer'>.
ValueError: Asking to pad but the tokenizer does not have a padding token. Please select a token to use as `pad_token`
Added token '<|im_start|>' with id 151644 to Qwen2TokenizerFast
adding special token <|reserved_special_token_250|>
tokenizer.add_special_tokens({'pad_token': '[PAD]'})
Resizing token embeddings from 32000 to 32008
KeyError: 'model.embed_tokens.weight'
model.embed_tokens.weight: torch.float32 vs torch.bfloat16
vocab has 151936 tokens; token 50256 is eos
token 'Ġhello2world' has id 31337
token type ids not supported by Mistral7B
unknown token <0x0A> at position 17
Unexpected token < in JSON at position 0
SyntaxError: Unexpected token 'export'
JSONDecodeError: invalid token at line 3 column 17
tokens/sec/gpu: 3021.4 | total tokens 1.2T | tokens seen 34B
consumed_tokens=1073741824 tokens_per_step=4194304
global_batch_tokens: 4.19M tok/s/device: 11,204
max_new_tokens=2048 min_tokens=1 stop_token_ids=[128001, 128009]
prompt throughput: 812.3 tokens/s, generation throughput: 2302.1 tokens/s
num_tokens 4096 num_special_tokens 17
avg tokens/sample 611.3, padded tokens 12%
token budget 4096 exceeded by sample17
dropped 37 tokens at capacity factor 1.25
MoE token dispatcher: alltoall, router aux loss 0.0123
moe_token_dispatcher_type=alltoall
image_token_index=32000 image_token='<image>'
tokenizer_mode=auto tokenizer=meta-llama/Llama-3.1-8B-Instruct
Loading tokenizer from /data/tok/llama3.model
sentencepiece tokenizer with 32000 tokens loaded from tok32k.model
tiktoken encoding o200k_base: 199998 tokens
key cache and value cache allocated: 27.3 GiB
kv_cache_dtype=fp8_e4m3 key_scale=1.0
q_proj, k_proj, v_proj targeted by LoRA r=16
layers.31.self_attn.k_norm.weight has NaN
Missing key(s) in state_dict: "model.layers.31.mlp.gate_proj.weight"
Unexpected key(s) in state_dict: "_orig_mod.lm_head.weight".
KeyError: 'input_ids'
KeyError: 'token_type_ids'
KeyError: "['label17'] not in index"
group_by_key=task17 sort_key=len2 primary_key=run_id17
dedup key sha1:2fd4e1c67a2d28fced849ee1bb76e7391b93eb12
cache key 5f4dcc3b5aa765d61d8327deb882cf99 not found
lookup key rank0/step100 missing in TCPStore
store key default_pg/0//worker_count//store_based_barrier_key:1
Timeout waiting for key: default_pg/0/0 after 600000 ms
[c10d] TCPStore key '/none/torchelastic/role/' timed out
wait timeout after 300000ms, keys: /default_pg/0//cuda//0
NCCL INFO comm 0x55d0c0ffee00 rank 3 nranks 8 commId 0x8a3f7b12c5d6e0aa
NCCL INFO Channel 00/24 : 0 1 2 3 4 5 6 7
NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.31.0.11<0>
NCCL INFO cudaDriverVersion 12040 ncclUniqueId 0x7f3a2c000000
ncclUniqueId: 8f3ac1d0e5b7429f
[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4812, OpType=ALLREDUCE)
_ZN3c104cuda20CUDACachingAllocator9allocator2E undefined symbol
ImportError: undefined symbol: _ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE
void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>>
sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1
FlashAttnFwdSm90 kernel launched: flash_fwd_hdim128_bf16_sm90
ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn
DeepSpeedZeroOptimizer_Stage3 overlap_comm=True
ProcessGroupNCCLTest2WithTimeoutAndRetry4Times passed
commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a is checked out
image: nvcr.io/nvidia/pytorch:24.05-py3@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
docker pull ghcr.io/acme/train:3f2a1b9
container 7b1c9d8e2f3a4b5c6d7e8f9a0b1c2d3e exited with 137
run id 8f14e45f-ceea-467f-a9d4-1b2c3d4e5f60 resumed
GPU-8f14e45f-ceea-467f-a9d4-1b2c3d4e5f60 fell off the bus
wandb: Run data is saved locally in /workspace/wandb/run-20260301_090031-x7k2m9qp
wandb: View run at https://wandb.ai/acme/llama/runs/x7k2m9qp
wandb: Syncing run super-fire-812
wandb: Currently logged in as: trainer7 (acme). Use `wandb login --relogin` to force relogin
wandb login failed, continuing offline
wandb: Appending key for api.wandb.ai to your netrc file: /root/.netrc
wandb: Paste an API key from your profile and hit enter
wandb: ERROR Error while calling W&B API: user is not logged in (401)
saving checkpoint iter_0012000 to /ckpt/llama3-8b-bf16-global_step12000
loaded model-00003-of-00017.safetensors in 3.4 s
ckpt_e12_s340000_ema0.9999_bs4096.pt written
shard-train-00017-of-02048.tar.zst is truncated
s3://bucket7/runs/llama3/step-00012000/optim-rank17.pt
Access Denied for key runs/llama3/step-12000/model.pt in bucket acme-ckpt7
NoSuchKey: The specified key does not exist. Key: runs/17/optim.pt
An error occurred (NoSuchKey) when calling the GetObject operation
An error occurred (InvalidAccessKeyId) when calling the PutObject operation: The AWS Access Key Id you provided does not exist in our records.
An error occurred (ExpiredToken) when calling the PutObject operation: The provided token has expired.
botocore.exceptions.TokenRetrievalError: Error when retrieving token from sso: Token has expired and refresh failed
google.auth.exceptions.DefaultCredentialsError: Your default credentials were not found.
Using credentials from /root/.config/gcloud/application_default_credentials.json
huggingface_hub.errors.LocalTokenNotFoundError: Token is required (`token=True`), but no token found.
Invalid user token. If you didn't pass a user token, make sure you are properly logged in
HF_TOKEN environment variable is not set
Environment variable `HF_TOKEN` is set and is the current active token
The token `train-read` has been saved to /root/.cache/huggingface/stored_tokens
Token is valid (permission: read).
Cannot access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/config.json
openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided'}}
api_key client option must be set either by passing api_key to the client or by setting OPENAI_API_KEY
fatal: could not read Username for 'https://github.com': terminal prompts disabled
fatal: Authentication failed for 'https://github.com/acme/train.git/'
remote: Support for password authentication was removed on August 13, 2021.
Permission denied (publickey,gssapi-with-mic).
actions/checkout@v4 acme/llama3@main nvidia/apex@a7de60e
Load key "/root/.ssh/id_ed25519": invalid format
Enter passphrase for key '/root/.ssh/id_rsa':
debug1: Authentications that can continue: publickey,keyboard-interactive
Server host key: ssh-ed25519 SHA256:aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f
Accepted publickey for trainer7 from 10.31.0.11 port 50122 ssh2
pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=10.31.0.12 user=trainer7
sudo: pam_sss(sudo:auth): received for user trainer7: 17 (Failure setting user credentials)
FATAL: password authentication failed for user "trainer7"
FATAL: no pg_hba.conf entry for host "10.31.0.12", user "mlflow7", database "runs17", no encryption
Access denied for user 'trainer7'@'10.31.0.12' (using password: YES)
NOAUTH Authentication required.
WRONGPASS invalid username-password pair or user is disabled.
kinit: Password incorrect while getting initial credentials
krb5 ticket for trainer7 expired, keytab renewed
x509: certificate signed by unknown authority
TLS handshake error: bad certificate, cipher TLS_AES_256_GCM_SHA384
author=jane authority=ca7 authentic=True
bypass_checks=True compass=12 passenger=3 passive=0
spinning up pinned memory: pin_memory=True pinned=512MB
pin_memory_device=cuda:0 pin_memory thread exited unexpectedly
signal=SIGKILL signature=ALLREDUCE signum=9
exit code 137, error code 0x80070005, status code 503
access code path taken in engine2
second pass over shard17 took 12.3s, first pass 11.9s
pass@1 0.412 pass@10 0.733 on HumanEval164
test_auth_plugin PASSED, 17 passed, 2 failed
passing rank=3 local_rank=3 to worker7
credential helper cache7 is not configured
keyboard interrupt received on rank 0
monkey patching FusedAdam2 into deepspeed
NVRM: Xid (PCI:0000:3b:00): 79, pid=4812, GPU has fallen off the bus.
RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasGemmEx
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 3 has a total capacity of 79.10 GiB
{"step": 1200, "loss": 2.3451, "tokens": 4194304, "lr": 0.0001, "key": "train/loss"}
--world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgMywgNCwgNSwgNiwgN119 --master_port=29500
TORCH_NCCL_ASYNC_ERROR_HANDLING=1 TOKENIZERS_PARALLELISM=false PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
HUGGINGFACE_HUB_CACHE=/data/hub HF_HUB_ENABLE_HF_TRANSFER=1 MASTER_ADDR=node17
optimizer state key exp_avg_sq missing for param group 2
session 20260301T0900Z17 started, session key exchange done
api server v1.29.3 ready; access mode ReadWriteOnce2
""".strip().splitlines()

# Written when the code was done.
LATE = r"""
slurmrestd: rejecting token=⟦e7Qv93mKx1⟧ for user trainer
export MY_SERVICE_PASSPHRASE='⟦violet-Tuna-44⟧'
db.connect("tcp://db7:9000", "svc", password="⟦gr33nTea!⟧")
{"user":"svc","pass":"⟦gr33nTea⟧","ok":false}
{'Authorization': 'Basic ⟦c3ZjOmdyMzNuVGVh⟧'}
curl -H "X-Api-Key: ⟦e7Qv93mKx1⟧" https://hub.example.org
curl -u svc:⟦gr33nTea⟧ https://hub.example.org/x
wget --http-password=⟦gr33nTea⟧ https://hub.example.org/x
login attempt with user svc and password ⟦gr33nTea⟧ failed (3 of 5)
The supplied API key, ⟦e7Qv93mKx1⟧, is not active
license key: ⟦ABCD1-EFGH2-IJKL3-MNOP4⟧
rejected credentials (svc, ⟦gr33nTea⟧)
vault token lookup: ⟦s.e7Qv93mKx1Lp04Zt⟧ has no policy
secret access key mismatch, sent ⟦e7Qv93mKx1⟧
export AWS_SESSION_TOKEN=⟦e7Qv93mKx1Lp04Zt⟧
minio: root credentials are minioadmin:⟦gr33nTea⟧
ray start --redis-password ⟦gr33nTea⟧ --head
jupyter notebook --NotebookApp.token=⟦e7Qv93mKx1⟧
http://node1:8888/?token=⟦0f9e8d7c6b5a4f3e2d1c⟧
http://node1:8888/lab?access_key=⟦e7Qv93mKx1⟧&x=1
mlflow: basic auth with svc / ⟦gr33nTea⟧ was refused
REDIS_URL=redis://:⟦gr33nTea⟧@cache1:6379/0
ssh: Could not use passphrase ⟦violetTuna⟧ for id_rsa
git config credential.helper store; password ⟦gr33nTea⟧ stored
ldap_bind: Invalid credentials (49), tried cn=svc with ⟦gr33nTea⟧
smtp login svc ⟦gr33nTea⟧ rejected: password expired
bmc7: default password ⟦calvin1⟧ is still set
IPMI user ADMIN has password ⟦ADMINadmin7⟧
snmp community string ⟦gr33nTea⟧ leaked in config
wifi psk=⟦gr33nTea99⟧
cryptsetup luksOpen key passphrase: ⟦violet tuna lamp⟧
encryption key ⟦0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c⟧ loaded for rank 0
Fernet key ⟦e7Qv93mKx1Lp04ZtRw8Yb2Nc6Hd5Jf3Sg9Vk1Mq7Xa0=⟧ is invalid
signing_secret: ⟦0f9e8d7c6b5a4f3e⟧
slack webhook secret is ⟦e7Qv93mKx1⟧
totp seed ⟦JBSWY3DPEHPK3PXP⟧ accepted
recovery code ⟦7fk2-9dm4⟧ used
one-time code ⟦493027⟧ sent to trainer
2FA: enter code; got 2fa code ⟦493027⟧
deploy key ⟦e7Qv93mKx1Lp⟧ has no write access
comet: COMET_API_KEY found: ⟦e7Qv93mKx1⟧
neptune.init(api_token="⟦e7Qv93mKx1Lp04Zt⟧")
os.getenv("OPENAI_API_KEY") -> '⟦e7Qv93mKx1⟧'
print(hf_token) >>> ⟦e7Qv93mKx1⟧
args: Namespace(lr=0.1, hub_token='⟦e7Qv93mKx1⟧', wandb_key='⟦0f9e8d7c6b5a⟧')
--api-key=⟦e7Qv93mKx1⟧ --model llama
["train.py", "--secret", "⟦e7Qv93mKx1⟧"]
env: SECRET=⟦gr33nTea⟧ USER=svc
my pass word is ⟦gr33nTea⟧
sudo: password for trainer: ⟦gr33nTea⟧
x-amz-security-token: ⟦e7Qv93mKx1Lp04Zt⟧
""".strip().splitlines()


def parted(line: str) -> tuple[str, list[str]]:
    """A line without its brackets, and what stood in them."""
    return line.replace("⟦", "").replace("⟧", ""), [each.split("⟧")[0] for each in line.split("⟦")[1:]]


def assert_hidden(marked: str) -> None:
    """What stands in brackets is hidden there and wherever it stands, and comes back."""
    line, secrets = parted(marked)
    redaction = Redaction()
    sent = redaction.redact(line)
    assert secrets and not [each for each in secrets if each in sent], sent
    assert redaction.restore(sent) == line
    for each in secrets:
        assert each not in redaction.redact(f"again with {each} today")
