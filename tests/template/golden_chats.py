def templates():
    return []
def conversations(name):
    return []
